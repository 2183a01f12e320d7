import type { HostJob, Task } from '@hatchway/protocol'
import { describe, expect, test } from 'vitest'
import { codeOf, openTestbed } from '../commands/testing.ts'
import type { HostRules } from '../commands/types.ts'
import { digestOf } from './guard.ts'

const guard = {
  containsSecrets: () => false,
  isOffline: () => false,
  approvalMs: 1000,
}
const host: HostRules = {
  runOf: () => undefined,
  workMs: () => 1000,
  finishing: () => undefined,
  isHarmless: () => false,
}
const corrupted = { corrupted: true, secret: false }
const request = { seq: 7, reply: null }

const open = async (rules: Parameters<typeof openTestbed>[0] = {}) => {
  const testbed = openTestbed({ guard, host, request, ...rules })
  await testbed.add({ folder: 'main', jid: 'local:main', name: 'Main', main: true, dialect: 'hatchway' })
  await testbed.add({ folder: 'work', jid: 'local:work', name: 'Work', main: false, dialect: 'hatchway' })
  return testbed
}
type Testbed = Awaited<ReturnType<typeof open>>
const taints = ({ store }: Testbed) => store.taints.all().map(({ group, context }) => `${group} ${context}`)
const read = ({ store }: Testbed) =>
  store.transaction(transaction => transaction.addTaint('main', 'session', corrupted, 'mail', 1))

describe('what was held is of the context it was held in, whatever that is when it is released', () => {
  const released = { isReleased: true, seen: corrupted } as const
  const daily = { schedule: '0 7 * * *', prompt: 'do as the mail says' }

  test('a task for another group', async () => {
    using testbed = await open(released)
    const task = { schedule_type: 'cron', schedule_value: '0 7 * * *', prompt: 'do as the mail says' }
    await testbed.ask('main', 'schedule_task', { ...task, group: 'work' })
    expect(taints(testbed)).toEqual(['work task:1'])
  })

  test('an agent that is made later', async () => {
    using testbed = await open(released)
    const { effects } = await testbed.ask('main', 'create_periodic_agent', { name: 'Relay', ...daily })
    expect(effects).toMatchObject([{ request: { kind: 'work', input: { name: 'Relay', seen: corrupted } } }])
  })

  test('what a deploy is to say to the next run', async () => {
    using testbed = await open(released)
    await testbed.ask('main', 'deploy', { resume_prompt: 'do as the mail says' })
    expect(taints(testbed)).toEqual(['main deploy:7'])
  })
})

describe('a command on the host', () => {
  const job: HostJob = { name: 'backup', command: 'backup', cwd: '/', user: null, timeout_seconds: 1 }
  const task: Task = {
    id: 'job-1',
    group: 'main',
    jid: 'local:main',
    created_by: 'main',
    prompt: 'backup',
    script: null,
    model: null,
    schedule_type: 'cron',
    schedule_value: '0 3 * * *',
    timezone: 'UTC',
    context_mode: 'isolated',
    status: 'paused',
    next_run: '2026-01-16T03:00:00.000Z',
    last_run: null,
    last_result: null,
    created_at: '2026-01-15T12:00:00.000Z',
    job,
  }
  const withJob = async () => {
    const testbed = await open()
    testbed.store.transaction(transaction => transaction.insertTask(task))
    return testbed
  }

  test.each([
    ['resume_task', { task_id: 'job-1' }],
    ['update_task', { task_id: 'job-1', status: 'active' }],
    ['update_task', { task_id: 'job-1', schedule_type: 'interval', schedule_value: '60000' }],
  ] as const)('is not run at strangers’ will: %s %o', async (type, payload) => {
    using testbed = await withJob()
    await read(testbed)
    const { effects } = await testbed.ask('main', type, payload)
    expect(effects).toMatchObject([
      { request: { kind: 'held', tool: type, input: { action: { payload: { command: 'backup' } } } } },
    ])
    expect(testbed.task('job-1')).toEqual(task)
  })

  test('may be stopped by anybody who may schedule one, and by nobody else', async () => {
    using testbed = await withJob()
    await read(testbed)
    expect(codeOf(await testbed.ask('work', 'resume_task', { task_id: 'job-1' }))).toBe('forbidden')
    expect(
      (await testbed.ask('main', 'update_task', { task_id: 'job-1', status: 'cancelled' })).outcome.ok,
    ).toBe(true)
    expect(testbed.task('job-1')?.status).toBe('cancelled')
  })
})

test('a shell gate that runs the command after five minutes is answered before that', async () => {
  const expiry = async (shape: 'decision' | 'receipt', approvalMs: number) => {
    const reply = { directory: 'responses', id: 'r-1', shape } as const
    using testbed = await open({ guard: { ...guard, approvalMs }, request: { seq: 7, reply } })
    await read(testbed)
    const { effects } = await testbed.ask('main', 'check_shell', { command: 'curl https://example.org' })
    const [effect] = effects
    if (effect?.kind !== 'request_stored') throw new Error('it is not held')
    return effect.request.expiresAt - effect.request.createdAt
  }
  expect(await expiry('receipt', 900_000)).toBe(900_000)
  expect(await expiry('decision', 900_000)).toBe(270_000)
  expect(await expiry('decision', 60_000)).toBe(60_000)
})

test('two payloads that differ have different digests, so that "always" is for what was shown', () => {
  const payloads = [
    { a: { b: 1 } },
    { a: [['b', 1]] },
    { a: {} },
    { a: [] },
    { a: [0] },
    { a: [[0]] },
    { a: null },
    { a: { b: [] } },
    { a: [['b', {}]] },
  ]
  expect(new Set(payloads.map(payload => digestOf({ name: 'mail', payload }))).size).toBe(payloads.length)
  expect(digestOf({ name: 'mail', payload: { a: 1, b: 2 } })).toBe(
    digestOf({ name: 'mail', payload: { b: 2, a: 1 } }),
  )
})
