import { getPriority } from 'node:os'
import { text } from 'node:stream/consumers'
import type { RunStart } from '@hatchway/protocol'
import { expect, test } from 'vitest'
import type { DriverContext } from '../packages/agent/src/drivers/types.ts'
import { readEnvironment } from '../packages/agent/src/run/environment.ts'
import { groupOf } from '../packages/host/src/chat/channels/testing.ts'
import { createProcessSandbox } from '../packages/host/src/sandboxes/process.ts'
import type { SandboxSpec } from '../packages/host/src/sandboxes/types.ts'
import { parrot } from './parrot.driver.ts'
import { sayings } from './sayings.dialect.ts'
import { wrapped } from './wrapped.sandbox.ts'

/** What docs/extending.md shows is tried here, put where the daemon would put it. */
const desk = groupOf('desk', { jid: 'lines:desk', requires_trigger: false })

test('a run in the wrapped sandbox starts behind the wrapper', async () => {
  const sandbox = wrapped(createProcessSandbox(), ['nice', '-n', '5'])
  const spec: SandboxSpec = {
    installation: 'examples',
    runId: 'one',
    group: { folder: 'desk' },
    command: [process.execPath, '-p', 'os.getPriority()'],
    workingDirectory: '/',
    environment: { PATH: process.env.PATH ?? '' },
    mounts: [],
    image: undefined,
    user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
    limits: { memoryMb: 64, processes: 8, cpus: 1, temporaryMb: 1 },
  }
  const run = await sandbox.start(spec)
  const printed = await text(run.stdout)
  expect((await run.exited).code).toBe(0)
  expect(Number(printed)).toBe(Math.min(19, getPriority() + 5))
  expect((await sandbox.check()).reason).toContain('nice')
})

test('the parrot answers everything that it was fed, and says so', async () => {
  const events: Parameters<DriverContext['emit']>[0][] = []
  const inputs = ['hello', 'again'].map((text, index) => ({
    ...{ id: `i${index}`, text, sender: 'ann', sender_name: 'Ann', timestamp: '2026-01-01T00:00:00.000Z' },
  }))
  const start: RunStart = {
    version: 1,
    run_id: 'one',
    kind: 'chat',
    group: { folder: desk.folder, name: desk.name, jid: desk.jid, main: false },
    assistant: 'Polly',
    timezone: 'UTC',
    session_id: null,
    model: null,
    task: null,
    inputs,
    context: [],
    driver: { name: 'concierge' },
    events: 'off',
  }
  const abort = new AbortController().signal
  const environment = readEnvironment({}, '')
  const session = await parrot({ start, environment, abort, emit: event => events.push(event) })
  session.feed(inputs)
  await session.finish()
  await session.ended
  expect(events).toMatchObject([
    { type: 'used', inputs: ['i0', 'i1'] },
    { type: 'step' },
    { type: 'result', text: 'hello again' },
  ])
})

test('a saying becomes a message, a bad one is refused, and anybody else’s file is left alone', () => {
  const read = (directory: string, body: Record<string, unknown>) => sayings.recognise({ directory, body })
  expect(read('messages', { say: 'Done.' })).toMatchObject({
    command: { type: 'send_message', payload: { text: 'Done.' } },
  })
  expect(read('messages', { say: 7 })).toMatchObject({ command: { code: 'invalid_field' } })
  expect(read('tasks', { say: 'Done.' })).toBeUndefined()
  expect(read('messages', { type: 'message', text: 'Done.' })).toBeUndefined()
})
