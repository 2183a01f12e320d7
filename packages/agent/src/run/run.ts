import type { Readable } from 'node:stream'
import type { RunEvent, RunInput, RunStart } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { drivers } from '../drivers/index.ts'
import type { DriverSession } from '../drivers/types.ts'
import { type ModelPort, openModelPort } from '../model-port/forward.ts'
import type { RunEnvironment } from './environment.ts'
import { eventLine } from './events.ts'
import { type Inbox, openInbox } from './inbox.ts'
import { runScript } from './script.ts'
import { readStart } from './start.ts'

/**
 * One run, from the host's document to the exit:
 *
 *   reading    the document is not whole yet. Not understood → `error`, exit 2
 *   deciding   a task's script runs. It wakes nobody → `script`, `result` with nothing to say, exit 0
 *   working    the driver has the first inputs; follow-ups go to it as they come. A chat's run stays so, idle or not,
 *              until `_close`; a task's run until its turn has ended
 *   finishing  nothing more is taken; the current turn ends. Exit 0
 *
 * A driver that cannot start or ends by itself → `error`, exit 1. A host that no longer reads ends the run as well.
 */
export interface RunOptions {
  stdin: Readable
  write(line: string): void
  environment: RunEnvironment
  /** the run ends at once when it fires */
  abort: AbortSignal
}

const heartbeatMs = 5000
const scriptMs = 30_000

export async function run(options: RunOptions): Promise<number> {
  const emit = (event: RunEvent) => options.write(eventLine(event))
  const start = await readStart(options.stdin)
  if ('problem' in start) {
    emit({ type: 'error', message: start.problem, session_id: null })
    return 2
  }
  let modelPort: ModelPort | undefined
  try {
    modelPort = await openModelPort(options.environment.variables)
  } catch (error) {
    const message = `The model’s port inside the sandbox could not be opened: ${reasonOf(error)}`
    emit({ type: 'error', message, session_id: start.session_id })
    return 1
  }
  emit({ type: 'ready' })
  const heartbeat = setInterval(() => emit({ type: 'heartbeat' }), heartbeatMs)
  try {
    const inputs = await decide(start, options, emit)
    return inputs === undefined ? 0 : await work(start, inputs, options, emit)
  } finally {
    clearInterval(heartbeat)
    modelPort?.close()
  }
}

/** The first inputs, with what the script found out; undefined: it wakes nobody. */
async function decide(
  start: RunStart,
  { environment, abort }: RunOptions,
  emit: (event: RunEvent) => void,
): Promise<readonly RunInput[] | undefined> {
  if (!start.task?.script) return start.inputs
  const outcome = await runScript(start.task.script, {
    cwd: environment.groupDirectory,
    env: environment.variables,
    timeoutMs: scriptMs,
    abort,
  })
  emit({ type: 'script', ...outcome })
  if (!outcome.wake) {
    emit({ type: 'used', inputs: start.inputs.map(({ id }) => id) })
    emit({ type: 'result', text: null, session_id: start.session_id })
    return undefined
  }
  if (outcome.data === undefined) return start.inputs
  const found = `\n\nThe task’s script found:\n${
    typeof outcome.data === 'string' ? outcome.data : JSON.stringify(outcome.data, null, 2)
  }`
  return start.inputs.map((input, index) =>
    index === start.inputs.length - 1 ? { ...input, text: input.text + found } : input,
  )
}

async function work(
  start: RunStart,
  inputs: readonly RunInput[],
  { environment, abort }: RunOptions,
  emit: (event: RunEvent) => void,
): Promise<number> {
  let inbox: Inbox | undefined
  const turnEnded = Promise.withResolvers<void>()
  const finishWanted = Promise.withResolvers<void>()
  let session: DriverSession
  try {
    const driver = await drivers[start.driver.name]()
    session = await driver({
      start,
      environment,
      abort,
      emit(event) {
        emit(event)
        if (event.type === 'used') inbox?.used(event.inputs)
        if (event.type === 'result' || event.type === 'error') turnEnded.resolve()
      },
    })
  } catch (error) {
    emit({ type: 'error', message: reasonOf(error), session_id: start.session_id })
    return 1
  }
  const aborted = new Promise<'aborted'>(resolve => {
    if (abort.aborted) resolve('aborted')
    abort.addEventListener('abort', () => resolve('aborted'))
  })

  session.feed(inputs)
  inbox = openInbox({
    directory: environment.input,
    events: start.events,
    takesMessages: start.kind === 'chat',
    take: message => session.feed([message]),
    finish: finishWanted.resolve,
    stopTurn: () => session.stopTurn(),
    acknowledge: id => emit({ type: 'used', inputs: [id] }),
    notice: text => emit({ type: 'step', kind: 'notice', text }),
  })
  const wanted =
    start.kind === 'task' ? Promise.race([turnEnded.promise, finishWanted.promise]) : finishWanted.promise
  const why = await Promise.race([
    wanted.then(() => 'wanted' as const),
    session.ended.then(() => 'ended' as const),
    aborted,
  ])
  inbox.close()
  if (why === 'wanted') {
    const how = await Promise.race([session.finish().then(() => 'finished' as const), aborted])
    if (how === 'finished') return 0
  }
  await session.close()
  return 1
}
