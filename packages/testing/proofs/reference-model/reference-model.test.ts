import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type DialectName, dialectNames, type Group, type Outcome, type Task } from '@hatchway/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Live, openLive } from '../../src/daemon/in-process.ts'
import { temporaryFolder } from '../../src/folders.ts'
import { until } from '../../src/until.ts'
import {
  hatchway,
  type Intent,
  mdclaw,
  nanoclaw,
  novabotDocument,
  type Op,
  pynchy,
  type Writer,
  write,
} from '../../src/writers/writers.ts'
import { type Answer, createModel, type Model, type OperatorAction, type Posted } from './model.ts'

/**
 * Whatever groups and operators do, in whatever order the host takes it: store, snapshots, answers and errors/ are
 * what a simple model says. Files are posted without waiting; what the host publishes tells the model the order.
 */
const registered = ['main', 'alpha', 'beta', 'gamma', 'delta'] as const
const folders = [...registered, 'n1', 'n2'] as const
const jidOf = (folder: string) => `${folder}@chat`

type Step =
  | { kind: 'file'; who: string; writer: string; op: Op; about: About }
  | { kind: 'bad'; who: string; which: number; requestId: string | undefined }
  | { kind: 'operator'; action: OperatorAction }
  | { kind: 'replay'; which: number }
  | { kind: 'settle' }
  | { kind: 'restart' }

interface About {
  to: string | undefined
  taskId: string | undefined
  newFolder: string
  requestId: string | undefined
  schedule: { schedule_type: string; schedule_value: string } | undefined
  status: string | undefined
  lies: boolean
}

const ops: readonly Op[] = [
  'send_message',
  'schedule_task',
  'update_task',
  'pause_task',
  'resume_task',
  'cancel_task',
  'register_group',
  'unregister_group',
  'refresh_groups',
  'call_service',
]
const speakers = [hatchway, hatchway, nanoclaw, novabotDocument, mdclaw, pynchy]
const words = speakers.flatMap(writer =>
  ops.filter(op => op in writer.says).map(op => ({ writer: writer.name, op })),
)
/** Tasks are what most can be done to, once there are some. */
const frequency = (op: Op) => (op === 'schedule_task' ? 8 : op.endsWith('_task') ? 3 : 2)
const spoken = words.flatMap(word => Array.from({ length: frequency(word.op) }, () => word))

const who = fc.constantFrom(...folders, ...registered, 'main', 'main', 'main', 'alpha', 'alpha')
const taskId = fc.constantFrom('t1', 't2', 't3', '1', '2')
const requestId = fc.option(fc.constantFrom('r0', 'r1'), { nil: undefined, freq: 2 })
const about: fc.Arbitrary<About> = fc.record({
  to: fc.option(fc.constantFrom(...folders), { nil: undefined, freq: 2 }),
  taskId: fc.option(taskId, { nil: undefined, freq: 4 }),
  newFolder: fc.constantFrom('n1', 'n2', 'N1', 'alpha', 'delta', '../n3'),
  requestId,
  schedule: fc.option(
    fc.constantFrom(
      { schedule_type: 'interval', schedule_value: '60000' },
      { schedule_type: 'once', schedule_value: '2099-01-01T00:00:00Z' },
      { schedule_type: 'interval', schedule_value: '5' },
      { schedule_type: 'once', schedule_value: '2001-01-01T00:00:00Z' },
    ),
    { nil: undefined, freq: 2 },
  ),
  status: fc.option(fc.constantFrom('active', 'paused', 'cancelled'), { nil: undefined, freq: 2 }),
  lies: fc.nat(7).map(chance => chance === 7),
})

const operatorAction: fc.Arbitrary<OperatorAction> = fc.oneof(
  fc.record({
    kind: fc.constant('task' as const),
    type: fc.constantFrom('pause_task' as const, 'resume_task' as const, 'cancel_task' as const),
    taskId,
  }),
  fc
    .record({
      folder: fc.constantFrom(...folders),
      main: fc.boolean(),
      dialect: fc.constantFrom(...dialectNames),
    })
    .map(group => ({ kind: 'add' as const, jid: jidOf(group.folder), ...group })),
  fc.record({ kind: fc.constant('remove' as const), folder: fc.constantFrom(...folders) }),
)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc
      .record({ who, word: fc.constantFrom(...spoken), about })
      .map(({ who, word, about }) => ({ kind: 'file' as const, who, about, ...word })),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('bad' as const), who, which: fc.nat(3), requestId }),
  },
  { weight: 4, arbitrary: operatorAction.map(action => ({ kind: 'operator' as const, action })) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replay' as const), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'settle' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
)

const dialects = fc.tuple(...registered.map(() => fc.constantFrom(...dialectNames)))

/** Files that are no command: what they are refused with, and whether that is seen before their sender is. */
const badFiles: readonly ((id: string) => {
  text: string
  code: string
  unread: boolean
  answered: boolean
})[] = [
  () => ({ text: '{"type":"message","text":]', code: 'invalid_json', unread: true, answered: false }),
  () => ({ text: '{"type":"a","type":"b"}', code: 'duplicate_key', unread: true, answered: false }),
  () => ({ text: '{"type":"open_door"}', code: 'unknown_type', unread: false, answered: false }),
  id => ({
    text: JSON.stringify({ version: 2, id, type: 'refresh_groups', payload: {} }),
    code: 'unsupported_version',
    unread: false,
    answered: true,
  }),
]

/** A few tasks to begin with, so that what comes finds something to be done to. */
const opening: readonly Step[] = (
  [
    ['alpha', 't1'],
    ['beta', 't2'],
    ['main', 't3'],
  ] as const
).map(([who, taskId]) => ({
  kind: 'file',
  who,
  writer: 'hatchway',
  op: 'schedule_task',
  about: {
    to: undefined,
    taskId,
    newFolder: '',
    requestId: undefined,
    schedule: undefined,
    status: undefined,
    lies: false,
  },
}))

let marks = 0

function intentOf({ op, who, about }: Extract<Step, { kind: 'file' }>): Intent {
  const { to, taskId, newFolder, requestId, schedule, status } = about
  const intent: Intent = { op, mark: `m${++marks}`, own: { folder: who, jid: jidOf(who) } }
  if (requestId !== undefined) intent.requestId = requestId
  if (op === 'register_group') return { ...intent, folder: newFolder, jid: jidOf(to ?? newFolder) }
  if (op === 'unregister_group') return { ...intent, jid: jidOf(to ?? 'alpha') }
  if (op.endsWith('_task') && op !== 'schedule_task') intent.taskId = taskId ?? 't1'
  if (op === 'schedule_task' && taskId !== undefined) intent.taskId = taskId
  if (op === 'schedule_task' || op === 'update_task') Object.assign(intent, schedule && { schedule })
  if (op === 'update_task' && status !== undefined) intent.status = status
  if ((op === 'send_message' || op === 'schedule_task') && to !== undefined) {
    Object.assign(intent, { folder: to, jid: jidOf(to) })
  }
  return intent
}

async function run(
  given: readonly DialectName[],
  mains: readonly boolean[],
  steps: readonly Step[],
): Promise<void> {
  const data = temporaryFolder('model')
  const model = createModel()
  const posted = new Map<string, Posted>()
  let due = 0
  let live = await openLive({ graceMs: 0 }, data)
  try {
    for (const folder of ['n1', 'n2']) {
      for (const directory of ['messages', 'tasks', 'groups']) {
        mkdirSync(join(live.layout.ipc, folder, directory), { recursive: true })
      }
    }
    for (const [i, folder] of registered.entries()) {
      const group = { folder, jid: jidOf(folder), main: mains[i] ?? false, dialect: given[i] ?? 'hatchway' }
      await live.host.addGroup({ ...group, name: folder })
      model.operated({ kind: 'add', ...group }, Date.now())
    }
    let taken = 0
    const seen = new Set<number>()
    /** Tells the model what has been handled since it was last told, each file once. */
    const tell = () => {
      for (; taken < live.events.length; taken++) {
        const event = live.events[taken]
        const file = event && posted.get(`${event.group}/${event.file}`)
        if (!event || !file || seen.has(event.seq)) continue
        seen.add(event.seq)
        if (!event.outcome)
          throw new Error(`${event.file} is answered later, which no command of the model is`)
        const expected = model.handled(file, event.outcome, event.receivedAt)
        if (typeof expected === 'string') {
          expect({ ...brief(file), code: codeOf(event.outcome), repeated: event.repeated }).toEqual({
            ...brief(file),
            code: expected,
            repeated: false,
          })
        } else {
          expect({ outcome: event.outcome, repeated: event.repeated }).toEqual({
            outcome: expected.repeats,
            repeated: true,
          })
        }
      }
    }
    const settled = async () => {
      await until(
        'every file is handled',
        () => new Set(live.events.map(({ seq }) => seq)).size >= due,
        10_000,
      )
      await until('every file is finished', () => isSpoolEmpty(live), 10_000)
      tell()
      await expectConsistent(live, model)
    }

    await live.start()
    for (const current of steps) {
      switch (current.kind) {
        case 'file': {
          const { who, op, about } = current
          const writer = speakerOf(current.writer)
          const intent = intentOf(current)
          const claimed = about.lies ? (who === 'main' ? 'alpha' : 'main') : who
          const claims = {
            folder: claimed,
            jid: jidOf(claimed),
            isMain: claimed === 'main',
            everywhere: about.lies,
          }
          const spoken = writer.says[op]?.(intent, claims)
          if (!spoken) throw new Error(`${writer.name} has no word for ${op}`)
          // Where the dialect of a group has no groups/, that directory is looked into at long intervals only.
          const said = spoken.directory === 'groups' ? { ...spoken, directory: 'tasks' } : spoken
          const file = writer.fileName(intent)
          posted.set(`${who}/${file}`, {
            folder: who,
            file,
            said,
            writer,
            intent,
            lies: about.lies,
            postedAt: Date.now(),
          })
          write(writer, join(live.layout.ipc, who), said, file, intent)
          due++
          break
        }
        case 'bad': {
          const { who, which, requestId } = current
          const mark = `m${++marks}`
          const { text, code, unread, answered } = badFiles[which]?.(requestId ?? mark) ?? badFile()
          const intent: Intent = { op: 'refresh_groups', mark, own: { folder: who, jid: jidOf(who) } }
          if (requestId !== undefined) intent.requestId = requestId
          const reply = answered
            ? { reply: { path: `responses/${requestId ?? mark}.json`, shape: 'receipt' as const } }
            : {}
          const said = { directory: 'tasks', type: '?', text, ...reply }
          const file = hatchway.fileName(intent)
          posted.set(`${who}/${file}`, {
            folder: who,
            file,
            said,
            writer: hatchway,
            intent,
            lies: false,
            bad: { code, unread },
            postedAt: Date.now(),
          })
          write(hatchway, join(live.layout.ipc, who), said, file, intent)
          due++
          break
        }
        case 'operator': {
          const { action } = current
          tell()
          const expected = model.operated(action, Date.now())
          expect({ action, code: codeOf(await operate(live, action)) }).toEqual({ action, code: expected })
          break
        }
        case 'replay': {
          const entries = live.host.quarantine.list()
          const entry = entries[current.which % Math.max(1, entries.length)]
          const file = entry && posted.get(`${entry.source_group}/${entry.original_file}`)
          if (!file) break
          tell()
          model.replayed(file)
          expect(codeOf(await live.host.replay(entry.id))).toBe('done')
          due++
          break
        }
        case 'settle':
          await settled()
          break
        case 'restart':
          await live.reopen()
          await live.start()
          break
      }
    }
    await settled()
    // Once more from the disk alone.
    await live.stop()
    live = await openLive({ graceMs: 0 }, data)
    await live.start()
    await expectConsistent(live, model)
  } finally {
    await live.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

const speakerOf = (name: string): Writer => {
  const found = speakers.find(writer => writer.name === name)
  if (!found) throw new Error(`nobody is called ${name}`)
  return found
}
const badFile = () => {
  throw new Error('there is no such bad file')
}
const codeOf = (outcome: Outcome) => (outcome.ok ? 'done' : outcome.error.code)
const brief = ({ folder, writer, intent, said }: Posted) => ({
  folder,
  writer: writer.name,
  intent,
  text: said.text,
})

const isSpoolEmpty = ({ layout }: Live) =>
  readdirSync(layout.spool).every(bucket => readdirSync(join(layout.spool, bucket)).length === 0)

function operate({ host }: Live, action: OperatorAction): Promise<Outcome> {
  switch (action.kind) {
    case 'task':
      return host.perform({ type: action.type, payload: { task_id: action.taskId } })
    case 'add': {
      const { kind: _, ...group } = action
      return host.addGroup({ ...group, name: group.folder })
    }
    case 'remove':
      return host.removeGroup(action.folder)
  }
}

// --- what must be seen -------------------------------------------------------------------------------------------

async function expectConsistent(live: Live, model: Model): Promise<void> {
  expectStore(live, model)
  expectErrors(live, model)
  expectAnswers(live, model)
  // Snapshots may follow a moment after the last command; what they then say is not a matter of time.
  const wrong = () => [...model.groups.values()].flatMap(group => wrongSnapshots(live, model, group))
  await until('the snapshots are written', () => wrong().length === 0, 3000).catch(() => {})
  expect(wrong()).toEqual([])
}

function expectStore({ host: { store } }: Live, model: Model): void {
  const groups = store.groups().map(({ added_at: _a, last_activity: _l, channel: _c, ...group }) => group)
  expect(sorted(groups, 'folder')).toEqual(sorted([...model.groups.values()], 'folder'))
  const tasks = store.tasks({})
  expect(tasks.map(({ id }) => id)).toEqual([...model.tasks.keys()])
  for (const task of tasks) {
    const { nextRun, ...expected } = model.tasks.get(task.id) ?? { nextRun: null }
    expect(task).toMatchObject(expected)
    const at = task.next_run === null ? null : Date.parse(task.next_run)
    if (nextRun === null) expect(at).toBeNull()
    else
      expect({ at, ...nextRun, within: at !== null && nextRun.from <= at && at <= nextRun.to }).toMatchObject(
        { within: true },
      )
  }
  expect(store.messages({}).map(({ group, jid, text }) => ({ group, jid, text }))).toEqual(model.messages)
}

function expectErrors({ host, layout }: Live, model: Model): void {
  const entries = host.quarantine.list()
  const found = entries.map(entry => [`${entry.source_group}/${entry.original_file}`, entry.code])
  expect(new Map(found.map(([key, code]) => [key, code]))).toEqual(model.refused)
  expect(entries).toHaveLength(model.refused.size)
  expect(readdirSync(layout.errors)).toHaveLength(2 * model.refused.size)
}

function expectAnswers({ layout }: Live, model: Model): void {
  const found = new Map<string, unknown>()
  for (const folder of folders) {
    for (const directory of ['responses', 'x_results']) {
      for (const name of namesIn(join(layout.ipc, folder, directory))) {
        found.set(`${folder}/${directory}/${name}`, read(join(layout.ipc, folder, directory, name)))
      }
    }
  }
  const expected = [...model.answers].map(([path, answer]) => [path, answerOf(answer)] as const)
  expect(found).toEqual(new Map(expected))
}

function answerOf({ id, shape, outcome }: Answer): unknown {
  const reason = outcome.ok ? '' : `${outcome.error.code}: ${outcome.error.message}`
  if (shape === 'receipt') return { version: 1, id, ...outcome }
  if (shape === 'result') return outcome.ok ? { result: outcome.result } : { error: reason }
  if (!outcome.ok) return { success: false, message: reason }
  return { success: true, message: 'done', data: outcome.result }
}

/** The two snapshots of a group that are not what its dialect makes of the model's state. */
function wrongSnapshots(
  { layout, host: { store } }: Live,
  model: Model,
  viewer: { folder: string; main: boolean; dialect: DialectName },
) {
  const stored = new Map(store.tasks({}).map(task => [task.id, task]))
  const visible = [...model.tasks.values()].filter(
    task => task.status !== 'cancelled' && (viewer.main || task.group === viewer.folder),
  )
  const tasks = visible.flatMap(task => {
    const volatile = stored.get(task.id)
    return volatile ? [taskIn(viewer.dialect, { ...volatile, ...withoutSpan(task) })] : []
  })
  const groups = viewer.main ? store.groups().filter(({ folder }) => model.groups.has(folder)) : []
  const wrong: object[] = []
  const compare = (name: string, expected: unknown) => {
    const found = withoutTimes(read(join(layout.ipc, viewer.folder, name)))
    // Of those made in the same millisecond, main sees its own first.
    if (!isDeepEqual(byId(found), byId(withoutTimes(expected))))
      wrong.push({ folder: viewer.folder, dialect: viewer.dialect, name, found, expected })
  }
  compare('current_tasks.json', tasks)
  compare('available_groups.json', groupsIn(viewer.dialect, groups, viewer.main))
  return wrong
}

const byId = (list: unknown): unknown =>
  Array.isArray(list) ? list.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1)) : list

const withoutSpan = ({ nextRun: _, ...task }: { nextRun: unknown }) => task

function taskIn(dialect: DialectName, task: Task): object {
  const { id, group, jid, prompt, schedule_type, schedule_value, status, next_run } = task
  const flat = { id, groupFolder: group, prompt, schedule_type, schedule_value, status, next_run }
  switch (dialect) {
    case 'hatchway':
      return task
    case 'nanoclaw':
    case 'novabot':
      return flat
    case 'pynchy':
      return { type: 'agent', ...flat }
    case 'mdclaw': {
      const { context_mode, created_at, last_run, last_result } = task
      const { groupFolder: _, ...shared } = flat
      return {
        ...shared,
        group_folder: group,
        chat_jid: jid,
        context_mode,
        created_at,
        last_run,
        last_result,
      }
    }
  }
}

function groupsIn(dialect: DialectName, groups: readonly Group[], main: boolean): unknown {
  switch (dialect) {
    case 'hatchway':
      return { groups }
    case 'mdclaw':
      if (!main) return undefined
      return groups.map(({ name, folder, trigger, added_at, requires_trigger }) => ({
        name,
        folder,
        trigger: trigger ?? '',
        added_at,
        requiresTrigger: requires_trigger,
      }))
    default:
      return {
        groups: groups.map(({ jid, name }) => ({ jid, name, isRegistered: true })),
      }
  }
}

function read(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** When the list was made is nothing the model knows. */
/** Every message is activity, and none has a list written anew. */
const times: ReadonlySet<string> = new Set(['lastSync', 'synced_at', 'lastActivity', 'last_activity'])

function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (times.has(key) ? [] : [[key, withoutTimes(inner)]])),
  )
}

function isDeepEqual(a: unknown, b: unknown): boolean {
  try {
    expect(a).toEqual(b)
    return true
  } catch {
    return false
  }
}

const sorted = <K extends string, T extends Record<K, string>>(items: readonly T[], key: K): T[] =>
  [...items].sort((a, b) => (a[key] < b[key] ? -1 : 1))

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

test('any sequence of commands leaves store, snapshots, answers and errors/ as the model has them', async () => {
  await fc.assert(
    fc.asyncProperty(
      dialects,
      fc.tuple(fc.constant(true), fc.boolean(), fc.constant(false), fc.constant(false), fc.boolean()),
      fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
      (given, mains, steps) => run(given, mains, [...opening, ...steps]),
    ),
    { numRuns: Number(process.env.HATCHWAY_MODEL_RUNS ?? 30) },
  )
}, 600_000)
