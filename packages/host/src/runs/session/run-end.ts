import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxExit } from '../../sandboxes/types.ts'
import type { Answers } from './answers.ts'
import type { Lifecycle } from './lifecycle.ts'
import { retryMs } from './listen.ts'
import type { SessionParts } from './parts.ts'
import type { RunReport, SessionEnd } from './types.ts'

/** What decides how a run has ended, beside its report. */
interface EndFacts {
  exit: SandboxExit
  isTask: boolean
  hasOpenInputs: boolean
  stoppedBy: string | undefined
  killedBecause: string | undefined
  isLost: boolean
}

const silence = 'The agent ended without an answer.'

/** Why the run failed; undefined: it ended as it should. */
function failureOf(report: RunReport, facts: EndFacts): string | undefined {
  const { exit, stoppedBy, killedBecause } = facts
  if (report.isFinished) return undefined
  if (stoppedBy !== undefined) return `Stopped by ${stoppedBy}.`
  // An idle session ends with the host as it would have ended by itself.
  if (report.endedByHost?.wasIdle) return undefined
  if (killedBecause !== undefined && (report.error === undefined || report.endedByHost))
    return `The agent was ended: ${killedBecause}.${facts.isLost ? ' Something of it may still be running.' : ''}`
  if (exit.problem !== undefined && killedBecause === undefined) return exit.problem
  if (report.error !== undefined) return report.error
  if (exit.code !== 0) return `The agent ended by itself (${exit.signal ?? `code ${exit.code}`}).`
  const isSilent = facts.isTask ? !report.spoke : facts.hasOpenInputs && !report.answered
  return isSilent && !report.isForgotten ? silence : undefined
}

export interface EndingParts extends SessionParts {
  answers: Answers
  lifecycle: Lifecycle
  /** resolves when the host ends the session */
  hostEnds: Promise<void>
}

/** From the exit of the sandbox to the stored end of the run. */
export async function endRun(parts: EndingParts, exit: SandboxExit): Promise<SessionEnd> {
  const { options, ledger, report, lifecycle, sandbox, transcript, isTask } = parts
  await sandbox.finishListening(() => report.endedByHost !== undefined)
  lifecycle.enter('ended')
  const currentFailure = () =>
    failureOf(report, {
      exit,
      isTask,
      hasOpenInputs: ledger.openCount() > 0,
      stoppedBy: lifecycle.stoppedBy(),
      killedBecause: sandbox.killedBecause(),
      isLost: sandbox.isLost(),
    })
  let failure = currentFailure()
  // Some agents end at the moment in which they ask for it: the file that says so may not be read yet.
  if (failure === silence && options.decided) {
    await Promise.race([options.decided(), parts.hostEnds])
    failure = currentFailure()
  }
  if (sandbox.complaints() !== '') transcript.keep('log', sandbox.complaints())
  if (failure !== undefined) transcript.keep('error', failure)
  await storeEnd(parts, failure)
  transcript.close()
  try {
    await options.input.clear()
  } catch (error) {
    options.log.warn({ err: error, ...parts.about }, 'the inbox of an ended run could not be emptied')
  }
  const { result, answered, woken } = report
  return { error: failure, result, answered, woken, hadNoRoom: sandbox.hadNoRoom() }
}

/**
 * Stores what people are told if the run is given up, what the agent used without saying so, and what goes back into the
 * queue. If the store fails, all of it is tried again, without the parts that are stored already, until the host stops:
 * the next host then puts the unanswered inputs back into the queue.
 */
async function storeEnd(parts: EndingParts, failure: string | undefined): Promise<void> {
  const { options, ledger, answers, report } = parts
  const runId = options.start.run_id

  const giveUp = (error: string) => {
    const mayTryAgain = report.endedByHost || parts.sandbox.hadNoRoom()
    if (report.answered || ledger.openCount() === 0 || mayTryAgain) return
    const words = options.giveUp(error)
    if (words !== undefined) answers.finishTurn(ledger.wholeTurn(), words, 'host')
  }
  /** A run that ended as it should has gone through everything it took. */
  const useSilently = () => {
    if (options.protocol.namesUsed && !report.isForgotten) return
    const turn = ledger.lastTurn(options.input.taken())
    if (turn.answers.length > 0) answers.finishTurn(turn, null, 'agent')
  }
  const write = () => {
    if (failure === undefined) useSilently()
    else giveUp(failure)
    options.store.giveBack(runId)
    const wasStopped = parts.lifecycle.stoppedBy() !== undefined || report.endedByHost !== undefined
    options.store.updateRun(runId, {
      sessionId: report.sessionId,
      status: failure === undefined ? 'done' : wasStopped ? 'stopped' : 'failed',
      endedAt: options.now(),
      result: report.result,
      error: failure ?? null,
    })
  }

  for (;;) {
    try {
      return write()
    } catch (error) {
      options.log.error({ err: error, ...parts.about }, 'the end of a run could not be stored')
      if (report.endedByHost) return
      await sleep(retryMs)
    }
  }
}
