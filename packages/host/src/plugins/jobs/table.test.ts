import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Task } from '@hatchway/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../store/sqlite.ts'
import type { OccurrenceRow } from '../../store/types.ts'
import type { JobRunRow } from './entity.ts'
import { createJobRunTable } from './table.ts'

const task: Task = {
  id: '1',
  group: 'main',
  jid: 'main@chat',
  created_by: 'main',
  prompt: 'job',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '60000',
  timezone: 'UTC',
  context_mode: 'isolated',
  status: 'active',
  next_run: '2026-01-15T12:00:00.000Z',
  last_run: null,
  last_result: null,
  created_at: '2026-01-01T00:00:00.000Z',
  job: { name: 'job', command: 'echo "a\u0001"', cwd: '/tmp', user: null, timeout_seconds: 5 },
}
const occurrence = (id: string): OccurrenceRow => ({
  id,
  taskId: '1',
  group: 'main',
  dueAt: 1,
  manual: true,
  status: 'running',
  runId: 'r',
  claimedAt: 1,
  startedAt: 2,
  endedAt: null,
  result: null,
  error: null,
})
const run = (occurrenceId: string): JobRunRow => ({
  occurrenceId,
  taskId: '1',
  exitCode: 3,
  signal: null,
  timedOut: false,
  output: 'one\ntwo €',
  dropped: 7,
  endedAt: 5,
})
const end = { status: 'failed', result: null, error: 'exit code 3' } as const
const entry = {
  at: 5,
  group: 'main',
  actor: 'host',
  action: 'host_job',
  summary: 's',
  outcome: 'failed',
} as const

function open() {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-job-runs-'))
  const store = openStore({ path: join(directory, 'hatchway.db'), durability: 'process', prepare: false })
  onTestFinished(() => {
    store.close()
    rmSync(directory, { recursive: true })
  })
  store.transaction(transaction => transaction.insertTask(task))
  const { sql } = store.pluginTables({ name: 'jobs', tables: ['job_runs'] })
  const table = createJobRunTable({
    sql,
    transaction: work => store.transaction(kernel => work(kernel, () => {})),
  })
  return { store, table }
}

test('how a run ended is kept with its occurrence, its task and the audit log, or not at all', () => {
  const { store, table } = open()
  store.agents.insertOccurrence(occurrence('1.1'))
  const broken = {
    ...entry,
    get reason(): string {
      throw new Error('the log is broken')
    },
  }
  expect(() => table.endRun(run('1.1'), end, broken)).toThrow('the log is broken')
  expect(table.run('1.1')).toBeUndefined()
  expect(store.agents.occurrence('1.1')?.status).toBe('running')
  table.endRun(run('1.1'), end, entry)
  expect(table.run('1.1')).toEqual(run('1.1'))
  expect(store.agents.occurrence('1.1')).toMatchObject({ status: 'failed', error: 'exit code 3', endedAt: 5 })
  expect(store.agents.task('1')).toMatchObject({ last_result: 'Error: exit code 3' })
  expect(store.audit.head().seq).toBe(1)
})

test('the output of a run is forgotten with its occurrence', () => {
  const { store, table } = open()
  for (const id of ['a', 'b', 'c']) {
    store.agents.insertOccurrence(occurrence(id))
    table.endRun(run(id), end, entry)
  }
  store.prune({ commands: 10, messages: 10, runs: 1, tasks: 10, usageDays: 1 })
  expect(['a', 'b', 'c'].map(id => table.run(id)?.output)).toEqual([undefined, undefined, run('c').output])
})
