import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'

const ask = (id: string, type: string, payload: object) => JSON.stringify({ version: 1, id, type, payload })
const hourly = { prompt: 'p', schedule_type: 'interval', schedule_value: '3600000' }

async function open(): Promise<Live> {
  const live = await openLive()
  onTestFinished(() => live.close())
  for (const folder of ['main', 'a']) {
    await live.host.addGroup({
      folder,
      jid: `${folder}@chat`,
      name: folder,
      main: folder === 'main',
      dialect: 'hatchway',
    })
  }
  return live
}
const drop = ({ layout }: Live, folder: string, id: string, type: string, payload: object) =>
  writeFileSync(join(layout.ipc, folder, 'tasks', `${id}.json`), ask(id, type, payload))
const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
const answerPath = ({ layout }: Live, folder: string, id: string) =>
  join(layout.ipc, folder, 'responses', `${id}.json`)
const spooled = ({ layout }: Live) =>
  readdirSync(layout.spool).flatMap(bucket => readdirSync(join(layout.spool, bucket)))

test('a group whose directories cannot be made takes nothing from the others of its batch', async () => {
  const live = await open()
  writeFileSync(join(live.layout.ipc, 'blocked'), 'in the way')
  drop(live, 'main', 'r1', 'register_group', { jid: 'blocked@chat', name: 'Blocked', folder: 'blocked' })
  drop(live, 'main', 'r2', 'schedule_task', { task_id: 'mine', ...hourly })
  drop(live, 'a', 'r3', 'schedule_task', { task_id: 'theirs', ...hourly })
  await live.start()
  await until('all are answered', () => live.host.status().handled === 3 && spooled(live).length === 0)
  for (const [folder, id] of [
    ['main', 'r1'],
    ['main', 'r2'],
    ['a', 'r3'],
  ] as const) {
    expect(read(answerPath(live, folder, id))).toMatchObject({ id, ok: true })
  }
  expect(read(join(live.layout.ipc, 'a', 'current_tasks.json'))).toMatchObject([{ id: 'theirs' }])

  // Once it is out of the way, the group is served like any other.
  rmSync(join(live.layout.ipc, 'blocked'))
  await live.reopen()
  await live.start()
  await until('its directories are there', () => existsSync(join(live.layout.ipc, 'blocked', 'tasks')))
  drop(live, 'blocked', 'r4', 'send_message', { text: 'at last' })
  await until('it is answered', () => existsSync(answerPath(live, 'blocked', 'r4')))
})

test('a command stays in the spool until its answer lies there, and is not executed again for it', async () => {
  const live = await open()
  const responses = join(live.layout.ipc, 'a', 'responses')
  const elsewhere = join(live.data, 'elsewhere')
  mkdirSync(elsewhere)
  rmSync(responses, { recursive: true })
  symlinkSync(elsewhere, responses)
  await live.start()
  drop(live, 'a', 'r1', 'send_message', { text: 'once' })
  await until('it is decided', () => live.host.store.messages({}).length === 1)
  expect(spooled(live)).toHaveLength(1)

  // Whoever comes next finds the decision, and what is left to do.
  await live.reopen()
  await live.start()
  expect(spooled(live)).toHaveLength(1)
  rmSync(responses)
  mkdirSync(responses)
  await until('it is answered', () => existsSync(answerPath(live, 'a', 'r1')))
  expect(read(answerPath(live, 'a', 'r1'))).toMatchObject({ ok: true, result: { status: 'queued' } })
  await until('it is gone from the spool', () => spooled(live).length === 0)
  expect(live.host.store.messages({}).map(({ text }) => text)).toEqual(['once'])
  expect(readdirSync(elsewhere)).toEqual([])
})

test('whoever has the answer finds its effect in the snapshot', async () => {
  const live = await open()
  await live.start()
  for (let i = 0; i < 20; i++) {
    drop(live, 'a', `r${i}`, 'schedule_task', { task_id: `t${i}`, ...hourly })
    await until('it is answered', () => existsSync(answerPath(live, 'a', `r${i}`)))
    for (const folder of ['a', 'main']) {
      expect(read(join(live.layout.ipc, folder, 'current_tasks.json'))).toHaveLength(i + 1)
    }
  }
})

test('a request that is made again in the same moment is answered after the first', async () => {
  const live = await open()
  drop(live, 'a', 'r1', 'schedule_task', { task_id: 'mine', ...hourly })
  // Under the same id in another dialect, so that the two answers can be told apart.
  writeFileSync(
    join(live.layout.ipc, 'a', 'tasks', 'r2.json'),
    JSON.stringify({ type: 'service:list_calendars', request_id: 'r1', calendar: 'home' }),
  )
  await live.start()
  await until('both are answered', () => spooled(live).length === 0)
  expect(read(answerPath(live, 'a', 'r1'))).toEqual({
    result: { task_id: 'mine', status: 'active', next_run: expect.any(String) },
  })
})

test('a group that is registered by another finds both its snapshots', async () => {
  const live = await open()
  await live.start()
  drop(live, 'main', 'r1', 'register_group', { jid: 'new@chat', name: 'New', folder: 'new' })
  await until('it is answered', () => existsSync(answerPath(live, 'main', 'r1')))
  expect(read(join(live.layout.ipc, 'new', 'current_tasks.json'))).toEqual([])
  expect(read(join(live.layout.ipc, 'new', 'available_groups.json'))).toMatchObject({ groups: [] })
  expect(read(join(live.layout.ipc, 'main', 'available_groups.json'))).toMatchObject({
    groups: [{ folder: 'main' }, { folder: 'a' }, { folder: 'new' }],
  })
  expect(lstatSync(join(live.layout.groups, 'new')).isDirectory()).toBe(true)
})
