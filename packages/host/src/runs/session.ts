import { createAgentEvents } from './session/agent-events.ts'
import { createAnswers } from './session/answers.ts'
import { createFollowUps } from './session/follow-ups.ts'
import { createLifecycle } from './session/lifecycle.ts'
import type { SessionParts } from './session/parts.ts'
import { endRun } from './session/run-end.ts'
import { safeCalls } from './session/safe-calls.ts'
import { createSandboxRun } from './session/sandbox-run.ts'
import { createTranscript } from './session/transcript.ts'
import { createTurnLedger } from './session/turn-ledger.ts'
import type { RunReport, Session, SessionOptions } from './session/types.ts'

export { inputsAtOnce } from './session/follow-ups.ts'
export type { Session, SessionEnd, SessionState } from './session/types.ts'

/**
 * One run of an agent, from the start of its sandbox to the end of it.
 *
 *   working    the agent has inputs that it has not answered
 *   idle       everything is answered; follow-ups are welcome
 *   stopping   a person stopped the turn. Its inputs count as answered, and what the agent still says about them is
 *              dropped
 *   closing    the agent was asked to finish. It may still end its turn; what people write now waits for the next run
 *   ended      the sandbox is gone
 *
 *   from       when                                                  to
 *   ────────   ───────────────────────────────────────────────────   ─────────────────────────────────────────────
 *   (start)    the run is stored                                     working
 *   working    a result, and every input is answered                 idle
 *   working    a result, and inputs are left                         working, with the whole time of a turn again
 *   working    the agent reports an error                            closing
 *   working    a person stops the turn                               stopping; killed if the agent cannot be asked
 *   working    the turn takes longer than `runMs`                    working, interrupted; killed if the agent cannot
 *                                                                    be interrupted or goes on for `closeMs`. Time in
 *                                                                    which a person has to decide does not count
 *   idle       a follow-up                                           working
 *   idle       after `idleMs`; somebody else needs the place; it     closing
 *              was a task; the agent can get no more follow-ups
 *   stopping   a result                                              idle (a task: closing)
 *   stopping   the agent reports an error                            closing
 *   stopping   after `closeMs`                                       killed; the next run is told why
 *   closing    after `closeMs`                                       killed
 *   any        the sandbox ends, by itself or killed                 ended
 *
 * An input counts as used only in the commit that stores its answer (`session/answers.ts`); which inputs a result
 * answers is decided in `session/turn-ledger.ts`. Inputs without an answer go to the next run, however this one ends
 * (`session/run-end.ts`). Nothing that an agent does, and no failure of the store or the disk, may throw out of an event
 * or a timer: that would end the host.
 */
export function startSession(options: SessionOptions): Session {
  const { start, group } = options
  const runId = start.run_id
  const about = { group: group.folder, run: runId }
  const hostEnds = Promise.withResolvers<void>()
  const report: RunReport = {
    sessionId: start.session_id,
    result: null,
    spoke: false,
    answered: false,
    woken: true,
    error: undefined,
    isFinished: false,
    isForgotten: false,
    isInboxBlocked: false,
    endedByHost: undefined,
  }
  const transcript = createTranscript({
    runId,
    store: options.store,
    now: options.now,
    failed: error => options.log.error({ err: error, ...about }, 'a transcript could not be written'),
  })
  const parts: SessionParts = {
    options,
    ledger: createTurnLedger(options.rows, options.protocol),
    report,
    sandbox: createSandboxRun(options, about),
    transcript,
    calls: safeCalls(options, about),
    about,
    isTask: start.kind === 'task',
    isCutOff: () => report.isInboxBlocked || report.isForgotten,
  }
  const { ledger, sandbox, calls } = parts
  const answers = createAnswers(parts)
  const lifecycle = createLifecycle(parts)
  const followUps = createFollowUps(parts, lifecycle)
  const events = createAgentEvents(parts, answers, lifecycle)

  const work = async () => {
    for (const { text } of start.inputs) transcript.keep('input', text)
    const exit = await sandbox.run({
      ...events,
      inputReady() {
        followUps.ready()
        calls.hasRoom()
      },
    })
    return endRun({ ...parts, answers, lifecycle, hostEnds: hostEnds.promise }, exit)
  }

  options.store.insertRun(
    options.run,
    options.rows.map(({ id }) => id),
  )
  calls.changed('working')
  lifecycle.enter('working')
  const ended = work()

  return {
    runId,
    group: group.folder,
    kind: start.kind,
    state: lifecycle.state,
    room: followUps.room,
    feed: followUps.feed,
    isByDeploy: followUps.isByDeploy,
    forget() {
      report.isForgotten = true
    },
    finish() {
      report.isFinished = true
    },
    stopTurn(by) {
      if (!lifecycle.hasTurn()) return false
      answers.finishTurn(ledger.wholeTurn(), `Stopped by ${by}.`, 'host', 'stopped')
      transcript.add('notice', `${by} stopped the turn.`)
      lifecycle.stopTurn(by)
      return true
    },
    close: lifecycle.close,
    kill(reason) {
      const state = lifecycle.state()
      report.endedByHost = {
        wasIdle: state === 'idle' || (state === 'closing' && ledger.openCount() === 0),
      }
      hostEnds.resolve()
      sandbox.kill(reason)
    },
    ended,
  }
}
