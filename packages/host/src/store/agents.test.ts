import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Task } from '@hatchway/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from './sqlite.ts'
import { groupOf as group } from './testing.ts'
import type { AgentStore, NewIncoming, NewMessage, OccurrenceRow, RunRow, Store } from './types.ts'

function databasePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-agents-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'hatchway.db')
}

/** A store that can be closed and opened again, so that what is read comes from the file. */
function open(folders: readonly string[] = ['a', 'b']) {
  const path = databasePath()
  let store = openStore({ path, durability: 'process', prepare: false })
  store.transaction(transaction => {
    for (const folder of folders) transaction.insertGroup(group(folder))
  })
  onTestFinished(() => store.close())
  return {
    path,
    get store(): Store {
      return store
    },
    get agents(): AgentStore {
      return store.agents
    },
    reopen() {
      store.close()
      store = openStore({ path, durability: 'process', prepare: false })
    },
    /** as another program would find the file */
    outside(look: (database: DatabaseSync) => void) {
      store.close()
      const database = new DatabaseSync(path)
      look(database)
      database.close()
      store = openStore({ path, durability: 'process', prepare: false })
    },
    change: (task: Task) =>
      store.transaction(transaction =>
        transaction.task(task.id) ? transaction.updateTask(task) : transaction.insertTask(task),
      ),
  }
}

const said = (text: string, more: Partial<NewIncoming> = {}): NewIncoming => ({
  group: 'a',
  jid: 'a@chat',
  channel: 'web',
  externalId: null,
  sender: 'u1',
  senderName: 'Ada',
  text,
  status: 'waiting',
  createdAt: 1,
  ...more,
})
const run = (id: string, more: Partial<RunRow> = {}): RunRow => ({
  id,
  group: 'a',
  kind: 'chat',
  taskId: null,
  occurrenceId: null,
  sandbox: 'process',
  image: null,
  driver: 'concierge',
  sessionId: null,
  status: 'running',
  startedAt: 1,
  endedAt: null,
  result: null,
  error: null,
  ...more,
})
const noon = Date.UTC(2026, 0, 1, 12)
const task = (id: string, more: Partial<Task> = {}): Task => ({
  id,
  group: 'a',
  jid: 'a@chat',
  created_by: 'a',
  prompt: 'p',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '60000',
  timezone: 'UTC',
  context_mode: 'group',
  status: 'active',
  next_run: new Date(noon).toISOString(),
  last_run: null,
  last_result: null,
  created_at: '2026-01-01T00:00:00.000Z',
  ...more,
})
const occurrence = (taskId: string, dueAt = noon, more: Partial<OccurrenceRow> = {}): OccurrenceRow => ({
  id: `${taskId}.${dueAt}`,
  taskId,
  group: 'a',
  dueAt,
  manual: false,
  status: 'claimed',
  runId: null,
  claimedAt: dueAt + 5,
  startedAt: null,
  endedAt: null,
  result: null,
  error: null,
  ...more,
})
const message = (id: number): NewMessage => ({
  id,
  group: 'a',
  jid: 'a@chat',
  author: 'agent',
  kind: 'text',
  text: `m-${id}`,
  sender: null,
  speech: null,
  messageId: null,
  createdAt: id,
})

describe('what people said', () => {
  const received = (agents: AgentStore, text: string, more: Partial<NewIncoming> = {}): number => {
    const id = agents.receive(said(text, more))
    if (id === undefined) throw new Error('known already')
    return id
  }
  const states = (agents: AgentStore) =>
    agents.incoming({}).map(({ text, status, runId }) => `${text} ${status} ${runId ?? '-'}`)

  test('is kept with everything about it', () => {
    const testbed = open()
    const id = testbed.agents.receive(said('hello', { externalId: 'x1' }))
    testbed.reopen()
    expect(testbed.agents.incoming({ group: 'a' })).toEqual([
      { ...said('hello', { externalId: 'x1' }), id, runId: null },
    ])
  })

  test('is taken once where the channel says which message it is', () => {
    const { agents } = open()
    expect(agents.receive(said('one', { externalId: 'x1' }))).toBeDefined()
    expect(agents.receive(said('one', { externalId: 'x1' }))).toBeUndefined()
    expect(agents.receive(said('two', { externalId: 'x2' }))).toBeDefined()
    // Some channels count within a chat, and two channels know nothing of each other.
    expect(agents.receive(said('other chat', { externalId: 'x1', jid: 'b@chat' }))).toBeDefined()
    expect(agents.receive(said('other way', { externalId: 'x1', channel: 'webhook' }))).toBeDefined()
    expect(agents.receive(said('same', {}))).toBeDefined()
    expect(agents.receive(said('same', {}))).toBeDefined()
    expect(agents.incoming({})).toHaveLength(6)
  })

  test('waits until a run has used it, and is in nobody’s hands before', () => {
    const testbed = open()
    const one = received(testbed.agents, 'one')
    const two = received(testbed.agents, 'two')
    received(testbed.agents, 'elsewhere', { group: 'b' })
    testbed.agents.give([one, two], 'r1')
    testbed.agents.use([one], 'r1')
    testbed.reopen()
    expect(states(testbed.agents)).toEqual(['one used r1', 'two given r1', 'elsewhere waiting -'])
    expect(testbed.agents.incoming({ runId: 'r1', status: 'given' })).toMatchObject([{ text: 'two' }])

    // The run ends; what it did not use goes to the next one, once.
    testbed.agents.giveBack('r1')
    expect(states(testbed.agents)).toEqual(['one used r1', 'two waiting r1', 'elsewhere waiting -'])
    testbed.agents.give([two], 'r2')
    testbed.agents.use([two], 'r1')
    expect(states(testbed.agents)).toContain('two given r2')
    testbed.agents.giveBack('r1')
    expect(states(testbed.agents)).toContain('two given r2')
  })

  test('cannot be given to a second run, nor when it is used', () => {
    const { agents } = open()
    const one = received(agents, 'one')
    agents.give([one], 'r1')
    agents.give([one], 'r2')
    expect(states(agents)).toEqual(['one given r1'])
    agents.use([one], 'r1')
    agents.give([one], 'r2')
    agents.giveBack('r1')
    expect(states(agents)).toEqual(['one used r1'])
  })

  test('to others goes along with the next one that calls the agent, and comes back with it', () => {
    const { agents } = open()
    received(agents, 'c1', { status: 'context' })
    received(agents, 'not mine', { status: 'context', group: 'b' })
    const call = received(agents, 'call')
    received(agents, 'c2', { status: 'context' })
    agents.give([call], 'r1')
    expect(states(agents)).toEqual(['c1 given r1', 'not mine context -', 'call given r1', 'c2 context -'])
    agents.giveBack('r1')
    expect(states(agents)).toEqual(['c1 context r1', 'not mine context -', 'call waiting r1', 'c2 context -'])

    const again = received(agents, 'again')
    agents.give([call, again], 'r2')
    agents.use([call], 'r2')
    expect(states(agents).slice(0, 4)).toEqual([
      'c1 used r2',
      'not mine context -',
      'call used r2',
      'c2 given r2',
    ])
    agents.use([again], 'r2')
    expect(agents.incoming({ group: 'a', status: 'used' })).toHaveLength(4)
    expect(agents.incoming({ status: 'context' })).toMatchObject([{ text: 'not mine' }])
  })

  test('names the groups that wait, the longest waiting first', () => {
    const { agents } = open()
    expect(agents.groupsWaiting()).toEqual([])
    received(agents, 'beside', { status: 'context', group: 'c' })
    const first = received(agents, '1', { group: 'b' })
    received(agents, '2')
    received(agents, '3', { group: 'b' })
    expect(agents.groupsWaiting()).toEqual(['b', 'a'])
    agents.give([first], 'r1')
    expect(agents.groupsWaiting()).toEqual(['a', 'b'])
  })

  test('is read on from where a reader has come to, whose number never comes again', () => {
    const testbed = open()
    const ids = ['1', '2', '3'].map(text => received(testbed.agents, text))
    expect(testbed.agents.incoming({ after: ids[0] ?? 0, limit: 1 })).toMatchObject([{ text: '2' }])
    testbed.store.transaction(transaction => transaction.deleteGroup('a'))
    testbed.reopen()
    expect(received(testbed.agents, '4', { group: 'b' })).toBeGreaterThan(ids[2] ?? 0)
  })
})

describe('a run', () => {
  test('is kept from its beginning to its end, with what it did', () => {
    const testbed = open()
    const whole = run('r1', { kind: 'task', taskId: '7', occurrenceId: '7.1' })
    testbed.agents.insertRun(whole)
    testbed.agents.insertRun(run('r2', { group: 'b' }))
    testbed.agents.addSteps([
      { runId: 'r1', at: 1, kind: 'input', name: null, text: 'hello' },
      { runId: 'r2', at: 2, kind: 'text', name: null, text: 'elsewhere' },
      { runId: 'r1', at: 3, kind: 'tool_call', name: 'send_message', text: '{}' },
    ])
    testbed.agents.addSteps([{ runId: 'nobody', at: 4, kind: 'log', name: null, text: 'late' }])
    testbed.agents.updateRun('r1', { status: 'failed', endedAt: 9, error: 'gone', sessionId: 's' })
    testbed.agents.updateRun('r1', {})
    testbed.reopen()
    expect(testbed.agents.run('r1')).toEqual({
      ...whole,
      status: 'failed',
      endedAt: 9,
      error: 'gone',
      sessionId: 's',
    })
    expect(testbed.agents.run('nobody')).toBeUndefined()
    expect(testbed.agents.steps('r1').map(({ kind, name, text }) => [kind, name, text])).toEqual([
      ['input', null, 'hello'],
      ['tool_call', 'send_message', '{}'],
    ])
    expect(testbed.agents.steps('nobody')).toEqual([])
  })

  test('can be set back to nothing in single fields', () => {
    const { agents } = open()
    agents.insertRun(run('r1', { sessionId: 's', error: 'e' }))
    agents.updateRun('r1', { sessionId: null })
    expect(agents.run('r1')).toMatchObject({ sessionId: null, error: 'e' })
  })

  test('is found by group, task and state, the newest of them in order', () => {
    const { agents } = open()
    for (const id of ['1', '2', '3', '4']) agents.insertRun(run(id, { group: id < '3' ? 'a' : 'b' }))
    agents.insertRun(run('5', { taskId: 't' }))
    agents.updateRun('1', { status: 'done' })
    const ids = (filter: Parameters<AgentStore['runs']>[0]) => agents.runs(filter).map(({ id }) => id)
    expect(ids({})).toEqual(['1', '2', '3', '4', '5'])
    expect(ids({ limit: 2 })).toEqual(['4', '5'])
    expect(ids({ group: 'a' })).toEqual(['1', '2', '5'])
    expect(ids({ status: 'running', group: 'a' })).toEqual(['2', '5'])
    expect(ids({ taskId: 't' })).toEqual(['5'])
  })

  test('ends a turn with all that belongs to it, or with nothing', () => {
    const testbed = open()
    const { agents } = testbed
    agents.insertRun(run('r1'))
    const id = agents.receive(said('hello')) ?? 0
    agents.give([id], 'r1')
    const turn = { runId: 'r1', group: 'a', usedIds: [id], sessionId: 's1', keepSession: true }
    testbed.store.transaction(transaction => transaction.insertMessage(message(1)))
    // The message's number is taken: nothing of the turn may stay.
    expect(() => agents.finishTurn({ ...turn, message: message(1) })).toThrow('UNIQUE')
    expect(agents.session('a')).toBeUndefined()
    expect(agents.incoming({ status: 'given' })).toHaveLength(1)
    expect(agents.run('r1')).toMatchObject({ sessionId: null, result: null })

    expect(agents.finishTurn({ ...turn, message: message(2) })).toBe(true)
    testbed.reopen()
    expect(testbed.agents.session('a')).toBe('s1')
    expect(testbed.agents.incoming({ status: 'used' })).toMatchObject([{ id, runId: 'r1' }])
    expect(testbed.agents.run('r1')).toMatchObject({ sessionId: 's1', result: 'm-2' })
    expect(testbed.store.dueMessages(10, 10).map(({ text }) => text)).toEqual(['m-1', 'm-2'])

    // A turn that says nothing and a session of its own leave those of the group as they are.
    expect(
      testbed.agents.finishTurn({
        ...turn,
        usedIds: [],
        sessionId: 'own',
        keepSession: false,
        message: undefined,
      }),
    ).toBe(true)
    expect(testbed.agents.finishTurn({ ...turn, usedIds: [], sessionId: null, message: undefined })).toBe(
      true,
    )
    expect(testbed.agents.session('a')).toBe('s1')
    expect(testbed.agents.run('r1')).toMatchObject({ sessionId: 'own', result: 'm-2' })
  })

  test('that was given up has no last words', () => {
    const { store, agents } = open()
    agents.insertRun(run('r1', { status: 'failed' }))
    const id = agents.receive(said('hello')) ?? 0
    const turn = { group: 'a', usedIds: [id], sessionId: 'late', keepSession: true, message: message(1) }
    expect(agents.finishTurn({ runId: 'r1', ...turn })).toBe(false)
    expect(agents.session('a')).toBeUndefined()
    expect(agents.incoming({ status: 'waiting' })).toHaveLength(1)
    expect(store.messages({})).toEqual([])
  })
})

test('the host itself can answer what waits, and only that', () => {
  const { store, agents } = open()
  agents.insertRun(run('r1'))
  const ids = ['given', 'waiting'].map(text => agents.receive(said(text)) ?? 0)
  agents.give(ids.slice(0, 1), 'r1')
  agents.receive(said('beside', { status: 'context' }))
  const turn = { group: 'a', usedIds: ids, sessionId: null, keepSession: true, message: message(1) }
  expect(agents.finishTurn({ runId: 'host', ...turn })).toBe(true)
  expect(agents.incoming({}).map(({ status, runId }) => `${status} ${runId}`)).toEqual([
    'given r1',
    'used host',
    'context null',
  ])
  expect(store.messages({})).toHaveLength(1)
})

describe('a session', () => {
  test('is remembered per group, replaced and dropped', () => {
    const testbed = open()
    testbed.agents.setSession('a', 's1')
    testbed.agents.setSession('b', 's2')
    testbed.agents.setSession('a', 's3')
    testbed.reopen()
    expect([testbed.agents.session('a'), testbed.agents.session('b')]).toEqual(['s3', 's2'])
    testbed.agents.setSession('a', null)
    expect([testbed.agents.session('a'), testbed.agents.session('b')]).toEqual([undefined, 's2'])
  })

  test('of a group that is unregistered is not there for the next of its name, nor is what waited', () => {
    const testbed = open()
    const { agents, store } = testbed
    agents.insertRun(run('r1'))
    agents.setSession('a', 's1')
    agents.setSession('b', 's2')
    const ids = ['used', 'given'].map(text => agents.receive(said(text)) ?? 0)
    agents.receive(said('waiting'))
    agents.receive(said('context', { status: 'context' }))
    agents.receive(said('elsewhere', { group: 'b' }))
    agents.give(ids, 'r1')
    agents.use(ids.slice(0, 1), 'r1')
    store.transaction(transaction => transaction.deleteGroup('a'))
    // Its agent may still be at work.
    agents.finishTurn({
      runId: 'r1',
      group: 'a',
      usedIds: ids,
      sessionId: 'late',
      keepSession: true,
      message: undefined,
    })
    agents.giveBack('r1')
    store.transaction(transaction => transaction.insertGroup(group('a')))
    testbed.reopen()
    expect(testbed.agents.session('a')).toBeUndefined()
    expect(testbed.agents.session('b')).toBe('s2')
    expect(testbed.agents.groupsWaiting()).toEqual(['b'])
    expect(testbed.agents.incoming({ group: 'a' }).map(({ text }) => text)).toEqual(['used'])
  })

  test('stays where unregistering fails', () => {
    const { store, agents } = open()
    agents.setSession('a', 's1')
    expect(() =>
      store.transaction(transaction => {
        transaction.deleteGroup('a')
        throw new Error('stumbled')
      }),
    ).toThrow('stumbled')
    expect(agents.session('a')).toBe('s1')
  })
})

describe('an occurrence', () => {
  const later = { status: 'active', nextRun: noon + 60_000 } as const

  test('is due when an active task’s time has come, the longest due first', () => {
    const { agents, change } = open()
    expect(agents.nextDue()).toBeUndefined()
    change(task('late', { next_run: new Date(noon - 5).toISOString() }))
    change(task('now'))
    change(task('paused', { status: 'paused' }))
    change(task('over', { status: 'cancelled', next_run: null }))
    change(task('soon', { next_run: new Date(noon + 1).toISOString() }))
    expect(agents.nextDue()).toBe(noon - 5)
    expect(agents.dueTasks(noon, 10).map(({ id }) => id)).toEqual(['late', 'now'])
    expect(agents.dueTasks(noon, 1).map(({ id }) => id)).toEqual(['late'])
    expect(agents.task('now')).toEqual(task('now'))
    expect(agents.task('nobody')).toBeUndefined()
  })

  test('is claimed once, and the task moves on with it', () => {
    const testbed = open()
    testbed.change(task('1'))
    expect(testbed.agents.claimOccurrence(occurrence('1'), later)).toEqual(occurrence('1'))
    testbed.reopen()
    expect(testbed.agents.claimOccurrence(occurrence('1'), later)).toBeUndefined()
    expect(testbed.agents.occurrences({})).toEqual([occurrence('1')])
    expect(testbed.agents.task('1')).toMatchObject({ status: 'active', next_run: '2026-01-01T12:01:00.000Z' })
    expect(testbed.agents.nextDue()).toBe(noon + 60_000)
  })

  test('completes a task that has none after it', () => {
    const { agents, change } = open()
    change(task('1', { schedule_type: 'once' }))
    agents.claimOccurrence(occurrence('1'), { status: 'completed', nextRun: null })
    expect(agents.task('1')).toMatchObject({ status: 'completed', next_run: null })
    expect(agents.nextDue()).toBeUndefined()
  })

  test.each([
    ['was paused', { status: 'paused' }],
    ['was cancelled', { status: 'cancelled', next_run: null }],
    ['is due at another time now', { next_run: new Date(noon + 1).toISOString() }],
  ] as const)('is not claimed if the task %s meanwhile', (_, change) => {
    const testbed = open()
    testbed.change(task('1', change))
    expect(testbed.agents.claimOccurrence(occurrence('1'), later)).toBeUndefined()
    expect(testbed.agents.task('1')).toEqual(task('1', change))
    expect(testbed.agents.occurrences({})).toEqual([])
  })

  test('of a time that comes again, as the clock was set back, only moves the task on', () => {
    const { agents, change } = open()
    change(task('1'))
    agents.claimOccurrence(occurrence('1'), later)
    change(task('1'))
    expect(agents.claimOccurrence(occurrence('1', noon, { claimedAt: 0 }), later)).toBeUndefined()
    expect(agents.task('1')).toMatchObject({ next_run: '2026-01-01T12:01:00.000Z' })
    expect(agents.occurrences({})).toEqual([occurrence('1')])
  })

  test('that runs and ends tells its task when and how', () => {
    const testbed = open()
    testbed.change(task('1'))
    testbed.agents.claimOccurrence(occurrence('1'), later)
    testbed.agents.updateOccurrence(`1.${noon}`, { status: 'running', runId: 'r1', startedAt: noon + 9 })
    expect(testbed.agents.occurrences({ status: 'running' })).toHaveLength(1)
    const end = { status: 'done', result: 'watered', error: null, endedAt: noon + 99 } as const
    testbed.agents.endOccurrence(`1.${noon}`, end)
    // What has ended stays as it ended.
    testbed.agents.endOccurrence(`1.${noon}`, { ...end, status: 'failed', error: 'late' })
    testbed.reopen()
    expect(testbed.agents.occurrence(`1.${noon}`)).toEqual(
      occurrence('1', noon, { runId: 'r1', startedAt: noon + 9, ...end }),
    )
    expect(testbed.agents.task('1')).toMatchObject({
      last_run: '2026-01-01T12:00:00.009Z',
      last_result: 'watered',
      next_run: '2026-01-01T12:01:00.000Z',
    })
  })

  test('that fails says why, briefly; one that did not run leaves the time of the last that did', () => {
    const { agents, change } = open()
    change(task('1'))
    agents.claimOccurrence(occurrence('1', noon, { startedAt: noon }), later)
    agents.endOccurrence(`1.${noon}`, {
      status: 'failed',
      result: null,
      error: 'x'.repeat(5000),
      endedAt: noon,
    })
    expect(agents.task('1')?.last_result).toMatch(/^Error: x{492}…$/)
    agents.claimOccurrence(occurrence('1', noon + 60_000), { ...later, nextRun: noon + 120_000 })
    agents.endOccurrence(`1.${noon + 60_000}`, {
      status: 'skipped',
      result: null,
      error: 'not now',
      endedAt: 1,
    })
    expect(agents.task('1')).toMatchObject({ last_run: '2026-01-01T12:00:00.000Z', last_result: 'not now' })
  })

  test('that somebody asked for leaves the schedule alone', () => {
    const { agents, change } = open()
    change(task('1'))
    const asked = occurrence('1', noon - 50, { manual: true })
    expect(agents.insertOccurrence(asked)).toBe(true)
    expect(agents.insertOccurrence(asked)).toBe(false)
    expect(agents.occurrences({ taskId: '1' })).toEqual([asked])
    expect(agents.task('1')).toEqual(task('1'))
  })

  test('can leave its task paused, with the reason', () => {
    const { agents, change } = open()
    change(task('1'))
    agents.claimOccurrence(occurrence('1', noon, { status: 'skipped' }), {
      status: 'paused',
      nextRun: noon,
      note: 'no rights',
    })
    expect(agents.task('1')).toMatchObject({ status: 'paused', last_result: 'no rights' })
    expect(agents.moveTask('1', noon, later)).toBe(false)
  })

  test('is found by task, group and state, the newest of them in order', () => {
    const { agents } = open()
    for (let i = 0; i < 4; i++) agents.insertOccurrence(occurrence('1', i, { group: i < 2 ? 'a' : 'b' }))
    agents.insertOccurrence(occurrence('2', 9, { status: 'skipped' }))
    const ids = (filter: Parameters<AgentStore['occurrences']>[0]) =>
      agents.occurrences(filter).map(({ id }) => id)
    expect(ids({ limit: 2 })).toEqual(['1.3', '2.9'])
    expect(ids({ taskId: '1', limit: 3 })).toEqual(['1.1', '1.2', '1.3'])
    expect(ids({ group: 'b' })).toEqual(['1.2', '1.3'])
    expect(ids({ status: 'claimed', taskId: '1', group: 'a' })).toEqual(['1.0', '1.1'])
  })
})

test('a group that names ever other models gets no more than so many rows a day, and all is counted', () => {
  const { agents } = open()
  const of = (model: string) =>
    agents.addUsage({
      ...{ group: 'a', day: '2026-01-01', model, requests: 1 },
      ...{ inputTokens: 1, outputTokens: 0, cachedTokens: 0 },
    })
  for (let i = 0; i < 60; i++) of(`m${i}`)
  for (let i = 0; i < 60; i++) of(`m${i}`)
  const rows = agents.usage({})
  expect(rows).toHaveLength(51)
  expect(rows.find(({ model }) => model === 'm49')).toMatchObject({ requests: 2 })
  expect(rows.find(({ model }) => model === '')).toMatchObject({ requests: 20, inputTokens: 20 })
})

test('models beyond that number are counted under the name that gives their price', () => {
  const { agents } = open()
  const of = (model: string, together?: string) =>
    agents.addUsage(
      {
        ...{ group: 'a', day: '2026-01-01', model, requests: 1 },
        ...{ inputTokens: 1, outputTokens: 0, cachedTokens: 0 },
      },
      together,
    )
  for (let i = 0; i < 50; i++) of(`m${i}`, 'm')
  for (let i = 0; i < 20; i++) of(`n${i}`, i % 2 === 0 ? 'n' : undefined)
  // One that has its own row keeps it.
  of('m7', 'm')
  const rows = agents.usage({})
  expect(rows).toHaveLength(52)
  expect(rows.filter(({ requests }) => requests > 1)).toMatchObject([
    { model: '', requests: 10 },
    { model: 'm7', requests: 2 },
    { model: 'n', requests: 10 },
  ])
})

test('usage is added up per group, day and model', () => {
  const testbed = open()
  const used = {
    group: 'a',
    day: '2026-01-31',
    model: 'm',
    requests: 1,
    inputTokens: 10,
    outputTokens: 3,
    cachedTokens: 0,
  }
  testbed.agents.addUsage(used)
  testbed.agents.addUsage(used)
  testbed.agents.addUsage({ ...used, day: '2026-02-01' })
  testbed.agents.addUsage({ ...used, group: 'b' })
  testbed.reopen()
  expect(testbed.agents.usage({ group: 'a' })).toEqual([
    { ...used, requests: 2, inputTokens: 20, outputTokens: 6, cachedTokens: 0 },
    { ...used, day: '2026-02-01' },
  ])
  expect(testbed.agents.usage({ since: '2026-02-01' })).toHaveLength(1)
  expect(testbed.agents.usage({})).toHaveLength(3)
})

describe('prune', () => {
  const limits = { commands: 10, messages: 3, runs: 3, tasks: 3, usageDays: 3 }

  test('keeps the newest tasks that are over, those that are not, and what each was made in', () => {
    const testbed = open()
    const at = (second: number) => new Date(second * 1000).toISOString()
    for (let i = 1; i <= 9; i++) {
      const status = i === 1 ? 'active' : i === 3 ? 'paused' : i % 2 === 0 ? 'cancelled' : 'completed'
      // The oldest of them ran last.
      testbed.change(task(`${i}`, { status, created_at: at(i), last_run: i === 2 ? at(100) : null }))
    }
    testbed.store.transaction(transaction => {
      for (let i = 1; i <= 9; i++) {
        transaction.addTaint('a', `task:${i}`, { corrupted: true, secret: false }, 'a page', 1)
      }
    })
    // Its run goes on, and is to find it at its end.
    testbed.agents.insertOccurrence(occurrence('5', noon, { status: 'running' }))
    testbed.store.prune(limits)
    const left = testbed.store.tasks({}).map(({ id }) => id)
    expect(left.toSorted()).toEqual(['1', '2', '3', '5', '8', '9'])
    expect(testbed.store.taints.all().map(({ context }) => context)).toEqual(
      left.toSorted().map(id => `task:${id}`),
    )
  })

  test('keeps the usage of the last days on which there was any', () => {
    const { store, agents } = open()
    for (const day of ['2025-12-30', '2025-12-31', '2026-01-01', '2026-01-03']) {
      agents.addUsage({
        group: 'a',
        day,
        model: 'm',
        requests: 1,
        inputTokens: 1,
        outputTokens: 1,
        cachedTokens: 0,
      })
    }
    store.prune(limits)
    expect(agents.usage({}).map(({ day }) => day)).toEqual(['2026-01-01', '2026-01-03'])
  })

  test('keeps the newest runs with their transcripts, and those that are not over', () => {
    const { store, agents } = open()
    for (let i = 1; i <= 9; i++) {
      agents.insertRun(run(`${i}`, { status: i === 2 ? 'running' : 'done' }))
      agents.addSteps([1, 2].map(at => ({ runId: `${i}`, at, kind: 'text', name: null, text: `${i}` })))
    }
    expect(store.prune(limits)).toBe(false)
    expect(agents.runs({}).map(({ id }) => id)).toEqual(['2', '7', '8', '9'])
    expect(agents.steps('2')).toHaveLength(2)
    expect(agents.steps('9')).toHaveLength(2)
    expect(agents.steps('1')).toEqual([])
  })

  test('keeps so many bytes of a group’s transcripts, the newest, and says of the others that they are gone', () => {
    const { store, agents } = open()
    const say = (runId: string, text: string) =>
      agents.addSteps([1, 2].map(at => ({ runId, at, kind: 'text', name: null, text })))
    for (const [id, group] of Object.entries({ 1: 'a', 2: 'a', 3: 'b', 4: 'a', 5: 'a' })) {
      const isOver = id !== '1'
      agents.insertRun(
        run(id, { group, status: isOver ? 'done' : 'running', endedAt: 5, result: 'é'.repeat(2000) }),
      )
      say(id, 'é'.repeat(5000))
    }
    const bytes = { ...limits, runs: 100, transcriptBytes: 50_000 }
    expect(store.prune(bytes)).toBe(true)
    expect(store.prune(bytes)).toBe(false)
    expect(['1', '2', '3', '4', '5'].map(id => agents.steps(id).length)).toEqual([2, 1, 2, 2, 2])
    expect(agents.steps('2')).toMatchObject([{ kind: 'notice', text: expect.stringContaining('forgotten') }])
    expect(agents.run('2')?.result).toHaveLength(1000)
    expect(agents.run('5')?.result).toHaveLength(2000)
  })

  test('forgets long transcripts bit by bit, and the run after its last step', () => {
    const testbed = open()
    testbed.agents.insertRun(run('long', { status: 'done' }))
    testbed.agents.addSteps(
      Array.from({ length: 4500 }, (_, at) => ({ runId: 'long', at, kind: 'text', name: null, text: '' })),
    )
    for (const id of ['1', '2', '3']) testbed.agents.insertRun(run(id))
    expect(testbed.store.prune(limits)).toBe(true)
    expect(testbed.agents.steps('long')).toHaveLength(2500)
    expect(testbed.store.prune(limits)).toBe(true)
    expect(testbed.store.prune(limits)).toBe(false)
    expect(testbed.agents.run('long')).toBeUndefined()
    testbed.outside(database =>
      expect(database.prepare('SELECT count(*) AS count FROM steps').get()).toEqual({ count: 0 }),
    )
  })

  test('keeps the newest occurrences, and those that are not over', () => {
    const { store, agents } = open()
    for (let i = 1; i <= 9; i++) {
      agents.insertOccurrence(occurrence('1', i, { status: i === 2 ? 'claimed' : 'done' }))
    }
    store.prune(limits)
    expect(agents.occurrences({}).map(({ id }) => id)).toEqual(['1.2', '1.7', '1.8', '1.9'])
  })

  test('keeps the newest of what was said, and what nobody has used yet', () => {
    const { store, agents } = open()
    for (let i = 1; i <= 9; i++) agents.receive(said(`${i}`, i < 3 ? { status: 'context' } : {}))
    agents.give([4, 5, 9], 'r1')
    agents.use([5, 9], 'r1')
    store.prune(limits)
    expect(agents.incoming({}).map(({ text }) => text)).toEqual(['3', '4', '6', '7', '8', '9'])
  })
})

test('what is asked for all the time is found through an index', () => {
  const asked = [
    [
      'tasks_due',
      "SELECT * FROM tasks WHERE status = 'active' AND next_run <= 1 ORDER BY next_run, rowid LIMIT 1",
    ],
    ['tasks_due', "SELECT min(next_run) AS due FROM tasks WHERE status = 'active'"],
    [
      'incoming_waiting',
      "SELECT group_folder FROM incoming WHERE status = 'waiting' GROUP BY group_folder ORDER BY min(id)",
    ],
    ['incoming_given', "SELECT * FROM incoming WHERE run_id = 'r' AND status = 'given'"],
    [
      'occurrences_open',
      "SELECT * FROM occurrences WHERE status = 'claimed' AND status IN ('claimed', 'running')",
    ],
    ['runs_running', "SELECT * FROM runs WHERE seq > 0 AND status = 'running' ORDER BY seq DESC LIMIT 1"],
    ['steps_run', 'SELECT * FROM steps WHERE run = 1 ORDER BY id'],
  ] as const
  open().outside(database => {
    for (const [index, text] of asked) {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all()
      expect(plan.map(({ detail }) => detail).join('; '), text).toContain(`INDEX ${index}`)
    }
  })
})
