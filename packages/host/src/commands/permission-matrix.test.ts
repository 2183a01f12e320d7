import { lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Outcome, Task } from '@hatchway/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configFor, type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { type Intent, type Said, write, writers } from '../../../testing/src/writers/writers.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import { openStore } from '../store/sqlite.ts'
import type { CommandRow, IncomingRow, MessageRow } from '../store/types.ts'
import {
  all,
  byWriter,
  families,
  fixture,
  folderOf,
  jidOf,
  type Sender,
  senders,
  type Target,
  taskIds,
  victims,
} from './testing/permission-cases.ts'

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const found = groups.get(key)
    if (found) found.push(item)
    else groups.set(key, [item])
  }
  return groups
}

let live: Live
let journal: Map<string, CommandRow[]>
let messages: Map<string, MessageRow[]>
let questions: Map<number, MessageRow>
let tasks: Map<string, Task>
let prompts: Map<string, Task[]>
let incoming: Map<string, IncomingRow[]>
let errors: Map<string, string[]>

beforeAll(async () => {
  const data = temporaryFolder('matrix')
  const groups = [
    ...byWriter.flatMap(({ writer }) =>
      senders
        .filter(sender => sender !== 'stray')
        .map(sender => ({
          folder: folderOf(writer, sender),
          main: sender === 'main',
          dialect: writer.dialect,
        })),
    ),
    ...victims.map(folder => ({ folder, main: false, dialect: 'hatchway' as const })),
  ]
  await registerGroups(
    configFor(data),
    groups.map(group => ({ ...group, jid: jidOf(group.folder), name: group.folder })),
  )
  const layout = layoutOf(data)
  for (const { writer } of byWriter) {
    for (const directory of ['messages', 'tasks', 'groups', 'audio']) {
      mkdirSync(join(layout.ipc, folderOf(writer, 'stray'), directory), { recursive: true })
    }
  }
  const store = openStore({ path: layout.database, durability: 'process' })
  store.transaction(transaction => {
    for (const { id, group, status } of taskIds) transaction.insertTask(fixture(id, group, status))
    for (const folder of victims) transaction.insertTask(fixture(`of-${folder}`, folder, 'active'))
  })
  store.close()

  live = await openLive({}, data)
  await live.start()
  for (const { writer, cases } of byWriter) {
    for (const { sender, said, file, intent } of cases) {
      write(writer, join(layout.ipc, folderOf(writer, sender)), said, file, intent)
    }
    await new Promise(setImmediate)
  }
  await until('every file is handled', () => live.events.length >= all.length)
  // What is held for a person keeps its file until somebody decides; what is only held to be searched goes on by itself.
  const heldFiles = () =>
    (live.host.services()?.requestQueue.open() ?? []).filter(
      ({ kind, seq }) => kind === 'held' && live.host.store.approvals.approval(seq)?.status === 'open',
    ).length
  await until(
    'every answer is given',
    () =>
      readdirSync(layout.spool).flatMap(bucket => readdirSync(join(layout.spool, bucket))).length ===
      heldFiles(),
  )

  await until('everything the host does itself is done', () =>
    (live.host.services()?.requestQueue.open() ?? []).every(({ kind }) => kind !== 'work'),
  )

  journal = grouped(live.host.store.commands({ limit: 100_000 }), row => `${row.group}/${row.file}`)
  messages = grouped(live.host.store.messages({}), row => row.messageId ?? row.text)
  questions = new Map(
    live.host.store.messages({}).flatMap(row => (row.kind === 'question' ? [[row.id, row]] : [])),
  )
  tasks = new Map(live.host.store.tasks({}).map(task => [task.id, task]))
  prompts = grouped([...tasks.values()], task => task.prompt)
  incoming = grouped(live.host.store.agents.incoming({}), ({ text }) => text)
  errors = grouped(readdirSync(layout.errors), originalName)
})
afterAll(() => live.close())

/** `{group}-{unique id}-{original name}.error`, and the same with `.json` behind it */
const originalName = (entry: string) => {
  const { group, name } = /^(?<group>.+?)-e\.\d+-(?<name>.+)\.error(\.json)?$/.exec(entry)?.groups ?? {}
  return `${group}/${name}`
}

type Check = (intent: Intent, sender: string, happened: boolean, target: Target, seq: number) => void

const expectMessage: Check = ({ op, mark, jid, own }, sender, happened) => {
  const found = messages.get(mark) ?? []
  expect(found).toHaveLength(happened ? 1 : 0)
  const kind = op === 'react' ? 'reaction' : 'text'
  if (happened) expect(found[0]).toMatchObject({ group: sender, jid: jid ?? own.jid, kind })
}

const expectNewTask: Check = ({ mark, jid, folder, own }, sender, happened) => {
  const found = prompts.get(mark) ?? []
  expect(found).toHaveLength(happened ? 1 : 0)
  if (!happened) return
  expect(found[0]).toMatchObject({
    group: folder ?? own.folder,
    jid: jid ?? own.jid,
    created_by: sender,
    status: 'active',
  })
  expect(Date.parse(found[0]?.next_run ?? '')).toBeGreaterThan(Date.now())
}

const expectChangedTask: Check = ({ op, mark, taskId = '' }, _, happened) => {
  const before = taskIds.find(({ id }) => id === taskId)
  const unchanged = before && fixture(before.id, before.group, before.status)
  const changes: Record<string, object> = {
    update_task: { prompt: mark },
    pause_task: { status: 'paused' },
    resume_task: { status: 'active', next_run: expect.any(String) },
    cancel_task: { status: 'cancelled', next_run: null },
  }
  expect(tasks.get(taskId)).toEqual(happened ? { ...unchanged, ...changes[op] } : unchanged)
}

const expectNewGroup: Check = ({ mark, jid, folder = '' }, sender, happened) => {
  const group = live.host.store.groups().find(({ name }) => name === mark)
  const directory = join(live.layout.ipc, folder)
  if (!happened) {
    expect(group).toBeUndefined()
    expect(lstatSync(directory, { throwIfNoEntry: false })).toBeUndefined()
    return
  }
  const { dialect } = live.host.store.group(sender) ?? {}
  expect(group).toMatchObject({ folder, jid, main: false, dialect })
  expect(readdirSync(directory)).toEqual(expect.arrayContaining(['messages', 'tasks', 'groups', 'input']))
}

const expectGroupGone: Check = ({ jid = '' }, _, happened, target) => {
  if (target !== 'victim') return
  const victim = jid.replace('@chat', '')
  expect(live.host.store.group(victim) === undefined).toBe(happened)
  expect(tasks.get(`of-${victim}`)?.status).toBe(happened ? 'cancelled' : 'active')
}

const expectQuestion: Check = (_, sender, happened, __, seq) => {
  const question = live.host.store.questions.question(seq)
  if (!happened) return expect(question).toBeUndefined()
  expect(question).toMatchObject({ group: sender, jid: jidOf(sender), status: 'open', answers: [null] })
  expect(questions.get(question?.messageId ?? 0)).toMatchObject({ group: sender, jid: jidOf(sender) })
}

const expectPeriodicAgent: Check = ({ mark }, sender, happened) => {
  const group = live.host.store.groups().find(({ name }) => name === mark)
  const found = prompts.get(mark) ?? []
  expect(found).toHaveLength(happened ? 1 : 0)
  if (!happened) return expect(group).toBeUndefined()
  const { dialect } = live.host.store.group(sender) ?? {}
  expect(group).toMatchObject({ folder: mark, main: false, dialect })
  expect(found[0]).toMatchObject({ group: mark, created_by: sender, schedule_value: '0 9 * * *' })
}

/** Whatever the file says, the message is for the sender's own agent. */
const expectReset: Check = ({ mark }, sender, happened) => {
  const found = incoming.get(mark) ?? []
  expect(found).toHaveLength(happened ? 1 : 0)
  if (happened) expect(found[0]).toMatchObject({ group: sender, status: 'waiting' })
}

/** What a refresh does is seen further down; the others have nothing to do anything with yet. */
const expectNothing: Check = ({ mark }) => expect(messages.has(mark) || prompts.has(mark)).toBe(false)

/** That it happened exactly once, as it was asked for; or that everything is as it was. */
const expectEffect: Record<(typeof families)[Intent['op']], Check> = {
  chat: expectMessage,
  schedule: expectNewTask,
  task: expectChangedTask,
  register: expectNewGroup,
  unregister: expectGroupGone,
  refresh: expectNothing,
  question: expectQuestion,
  shell: expectNothing,
  'host later': expectNothing,
  'self later': expectNothing,
  'periodic agent': expectPeriodicAgent,
  reset: expectReset,
  finish: expectNothing,
}

function answerTo(id: string, shape: NonNullable<Said['reply']>['shape'], outcome: Outcome): unknown {
  const reason = outcome.ok ? '' : `${outcome.error.code}: ${outcome.error.message}`
  switch (shape) {
    case 'receipt':
      return { version: 1, id, ...outcome }
    case 'result':
      return outcome.ok ? { result: outcome.result } : { error: reason }
    case 'decision': {
      const decision = outcome.ok ? { decision: 'allow' } : { decision: 'deny', reason }
      // Pynchy's hook reads it there, and takes nothing there for a yes.
      return { ...decision, result: decision }
    }
    case 'success':
      return { success: false, message: reason }
  }
}

describe.each(byWriter)('$name', ({ writer, cases }) => {
  test.each(cases)('$title', ({ sender, target, intent, said, file, code }) => {
    const folder = folderOf(writer, sender)
    const rows = journal.get(`${folder}/${file}`) ?? []
    expect(rows).toHaveLength(1)
    const row = rows[0]
    if (!row) return
    const { outcome } = row
    expect(!outcome ? 'answer follows' : outcome.ok ? 'done' : outcome.error.code).toBe(code)
    expect(row).toMatchObject({ group: folder, directory: said.directory, type: said.type })

    const happened = code === 'done' || code === 'answer follows'
    expectEffect[families[intent.op]](intent, folder, happened, target, row.seq)

    const entries = errors.get(`${folder}/${file}`) ?? []
    if (outcome?.ok !== false) {
      expect(entries).toEqual([])
    } else {
      const name = `${folder}-e.${row.seq}-${file}.error`
      expect(entries.sort()).toEqual([name, `${name}.json`])
      expect(readFileSync(join(live.layout.errors, name), 'utf8')).toBe(said.text)
      expect(JSON.parse(readFileSync(join(live.layout.errors, `${name}.json`), 'utf8'))).toMatchObject({
        original_file: file,
        error: outcome.error.message,
        processed_at: new Date(row.receivedAt).toISOString(),
        source_group: folder,
        code,
        type: said.type,
      })
    }

    if (said.reply && outcome) {
      const answer: unknown = JSON.parse(readFileSync(join(live.layout.ipc, folder, said.reply.path), 'utf8'))
      expect(answer).toEqual(answerTo(intent.mark, said.reply.shape, outcome))
    }
  })
})

test('nothing else happened', () => {
  const isDone = (code: string) => code === 'done' || code === 'answer follows'
  const done = (...wanted: string[]) =>
    all.filter(({ code, intent }) => isDone(code) && wanted.includes(families[intent.op])).length
  expect(live.events).toHaveLength(all.length)
  expect(live.host.store.messages({})).toHaveLength(done('chat', 'question'))
  expect(questions.size).toBe(done('question'))
  expect(tasks.size).toBe(taskIds.length + victims.length + done('schedule', 'periodic agent'))
  expect(live.host.store.groups()).toHaveLength(
    3 * writers.length + victims.length + done('register', 'periodic agent') - done('unregister'),
  )
  expect(readdirSync(live.layout.errors)).toHaveLength(2 * all.filter(({ code }) => !isDone(code)).length)
})

test('nobody is given an answer to a file that has no request id', () => {
  const found: string[] = []
  for (const folder of readdirSync(live.layout.ipc)) {
    for (const directory of ['responses', 'merge_results', 'x_results']) {
      const path = join(live.layout.ipc, folder, directory)
      if (!lstatSync(path, { throwIfNoEntry: false })) continue
      for (const name of readdirSync(path)) found.push(`${folder}/${directory}/${name}`)
    }
  }
  const expected = all.flatMap(({ writer, sender, said, code }) =>
    said.reply && code !== 'answer follows' ? [`${folderOf(writer, sender)}/${said.reply.path}`] : [],
  )
  expect(found.sort()).toEqual(expected.sort())
})

test('every command of the protocol is asked for in at least one dialect', () => {
  const asked = new Set(all.map(({ intent }) => intent.op))
  expect([...asked].sort()).toEqual(Object.keys(families).sort())
})

describe('refresh_groups', () => {
  const said: Said = { directory: 'tasks', type: 'refresh_groups', text: '{"type":"refresh_groups"}\n' }
  const lastSync = () => {
    const path = join(live.layout.ipc, 'nanoclaw-main', 'available_groups.json')
    return JSON.parse(readFileSync(path, 'utf8')).lastSync
  }
  const refresh = async (sender: Sender, name: string) => {
    const writer = writers.find(({ name }) => name === 'nanoclaw')
    if (!writer) throw new Error('NanoClaw is gone')
    const folder = folderOf(writer, sender)
    const intent: Intent = { op: 'refresh_groups', mark: name, own: { folder, jid: jidOf(folder) } }
    const before = live.events.length
    write(writer, join(live.layout.ipc, folder), said, name, intent)
    await until('the refresh is handled', () => live.events.length > before)
  }

  test('by main has the list written anew', async () => {
    const before = lastSync()
    await refresh('main', 'refresh_1.json')
    await until('the list is there', () => lastSync() > before)
  })

  test.each(['owner', 'other', 'stray'] as const)('by %s leaves it as it is', async sender => {
    const before = lastSync()
    await refresh(sender, 'refresh_2.json')
    expect(lastSync()).toBe(before)
  })
})
