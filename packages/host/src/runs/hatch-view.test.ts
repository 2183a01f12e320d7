import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { agentUser, collect, missing } from '../../../testing/src/sandboxes/suite.ts'
import { createLayout, layoutOf } from '../base/layout.ts'
import { createBubblewrap } from '../sandboxes/bubblewrap.ts'
import { inside, mountsFor } from '../sandboxes/mounts.ts'
import { createHatchView } from './hatch-view.ts'

/** The root of a hatch that Pynchy's container writes to, with what it does there and with what it must not gain. */
const list = [
  { id: 'aaaaaaaa', content: 'buy milk', done: false, created_at: '2026-01-01T00:00:00.000Z' },
  { id: 'bbbbbbbb', content: 'water the plants', done: false, created_at: '2026-01-02T00:00:00.000Z' },
]
const owner = process.getuid?.() === 0 ? agentUser : undefined

const open = async () => {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-view-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const layout = layoutOf(join(home, 'data'))
  createLayout(layout)
  const hatch = join(layout.ipc, 'work')
  for (const name of ['input', 'tasks']) {
    mkdirSync(join(hatch, name), { recursive: true })
    if (owner) chownSync(join(hatch, name), owner.uid, owner.gid)
  }
  const show = (name: string, content: unknown) =>
    post(hatch, JSON.stringify(content), { name, staging: layout.staging, mode: 0o644 })
  show('todos.json', list)
  show('current_tasks.json', ['first'])
  const completed: string[] = []
  const view = createHatchView({
    layout,
    folder: 'work',
    owner,
    ipcAt: '/workspace/ipc',
    snapshots: ['current_tasks.json', 'todos.json'],
    complete: ids => completed.push(...ids),
  })
  await view.prepare()
  const root = join(layout.views, 'work')
  return { home, layout, hatch, root, show, view, completed, todos: join(root, 'todos.json') }
}
type Rig = Awaited<ReturnType<typeof open>>
const isRestored = ({ todos }: Rig) => lstatSync(todos).isSymbolicLink()

/** As its tool writes: a list beside the list, renamed over it. */
const write = ({ todos }: Rig, content: string) => {
  writeFileSync(`${todos}.tmp`, content)
  renameSync(`${todos}.tmp`, todos)
}

test('what is done in the list that it writes is completed, once, and the host’s own list is there again', async () => {
  const rig = await open()
  rig.view.scan()
  expect(rig.completed).toEqual([])
  write(rig, JSON.stringify(list.map(todo => ({ ...todo, done: todo.id === 'bbbbbbbb' }))))
  rig.view.scan()
  rig.view.scan()
  expect(rig.completed).toEqual(['bbbbbbbb'])
  expect(isRestored(rig)).toBe(true)
})

test('what a run wrote before the host died is heard by the next', async () => {
  const rig = await open()
  write(rig, JSON.stringify([{ ...list[0], done: true }]))
  await rig.view.prepare()
  expect(rig.completed).toEqual(['aaaaaaaa'])
  expect(isRestored(rig)).toBe(true)
})

test.each<[string, (rig: Rig) => void]>([
  [
    'a link to a file of the host',
    ({ todos, home }) => {
      writeFileSync(join(home, 'secret'), JSON.stringify([{ id: 'aaaaaaaa', done: true }]))
      rmSync(todos)
      symlinkSync(join(home, 'secret'), todos)
    },
  ],
  [
    'a FIFO',
    ({ todos }) => {
      rmSync(todos)
      execFileSync('mkfifo', [todos])
    },
  ],
  [
    'an empty directory',
    ({ todos }) => {
      rmSync(todos)
      mkdirSync(todos)
    },
  ],
  [
    'a file of ten gigabytes',
    rig => {
      write(rig, '[')
      truncateSync(rig.todos, 10_000_000_000)
    },
  ],
  ['a file that is not JSON', rig => write(rig, '[{"id":')],
  ['a list of something else', rig => write(rig, JSON.stringify([{ id: 7, done: 'yes' }, null]))],
  ['nothing', ({ todos }) => rmSync(todos)],
])('%s in its place completes nothing, and is gone', async (_, change) => {
  const rig = await open()
  change(rig)
  rig.view.scan()
  expect(rig.completed).toEqual([])
  expect(isRestored(rig)).toBe(true)
})

test('a directory that is not empty blocks its own list, and is gone with the next run', async () => {
  const rig = await open()
  rmSync(rig.todos)
  mkdirSync(join(rig.todos, 'deep', 'er'), { recursive: true })
  mkdirSync(join(rig.root, 'junk', 'junk'), { recursive: true })
  expect(() => rig.view.scan()).toThrow()
  expect(rig.completed).toEqual([])
  await rig.view.prepare()
  expect(isRestored(rig)).toBe(true)
  expect(existsSync(join(rig.root, 'junk'))).toBe(false)
})

const sandbox = createBubblewrap()
const { available } = await sandbox.check()
if (!available) missing('bubblewrap')

test.skipIf(!available)(
  'in a sandbox (bubblewrap): it completes a todo, sees what is new, and can move nothing',
  async () => {
    const rig = await open()
    const mounts = mountsFor({
      layout: rig.layout,
      group: { folder: 'work' },
      owner,
      node: process.execPath,
      hatch: rig.view.mounts,
      rules: { allowedFile: undefined, project: '/nowhere', data: join(rig.home, 'data') },
    })
    if (!mounts.ok) throw new Error(mounts.problems.join())
    const script = `
    const fs = require('node:fs'), ipc = '/workspace/ipc'
    const attempt = what => { try { what(); return 'done' } catch (error) { return error.code } }
    const read = name => JSON.parse(fs.readFileSync(ipc + '/' + name, 'utf8'))
    const todos = read('todos.json')
    todos[0].done = true
    fs.writeFileSync(ipc + '/todos.json.tmp', JSON.stringify(todos, null, 2))
    fs.renameSync(ipc + '/todos.json.tmp', ipc + '/todos.json')
    console.log(JSON.stringify({
      listed: read('todos.json').map(todo => todo.done),
      tasks: read('current_tasks.json'),
      moved: ['input', 'tasks', '.host'].map(name => attempt(() => fs.renameSync(ipc + '/' + name, ipc + '/x'))),
      removed: ['input', 'tasks', '.host'].map(name => attempt(() => fs.rmdirSync(ipc + '/' + name))),
      written: attempt(() => fs.writeFileSync(ipc + '/.host/current_tasks.json', 'x')),
      posted: attempt(() => fs.writeFileSync(ipc + '/tasks/x.json', '{}')),
    }))`
    const started = await sandbox.start({
      installation: `test-${process.pid}`,
      runId: `view-${process.pid}-${Date.now()}`,
      group: { folder: 'work' },
      command: [inside.node, '-e', script],
      workingDirectory: inside.group,
      environment: { HOME: inside.home, PATH: '/usr/bin:/bin' },
      mounts: mounts.mounts,
      image: undefined,
      user: agentUser,
      limits: { memoryMb: 512, processes: 64, cpus: 1, temporaryMb: 8 },
    })
    rig.show('current_tasks.json', ['second'])
    const { output, errors } = await collect(started)
    expect(errors).toBe('')
    const said = JSON.parse(output)
    expect(said).toMatchObject({
      listed: [true, false],
      moved: ['EBUSY', 'EBUSY', 'EBUSY'],
      removed: ['EBUSY', 'EBUSY', 'EBUSY'],
      written: 'EROFS',
      posted: 'done',
    })
    expect(readFileSync(join(rig.hatch, 'tasks', 'x.json'), 'utf8')).toBe('{}')
    rig.view.scan()
    expect(rig.completed).toEqual(['aaaaaaaa'])
  },
)
