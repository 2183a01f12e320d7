import type { RunEvent } from '@hatchway/protocol'
import type { Answers } from './answers.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { SessionParts } from './parts.ts'
import type { SandboxHandlers } from './sandbox-run.ts'

const errorLimit = 2000
const sessionIdLimit = 256
/** bytes that an agent may print in one turn: more than any of them has to say, and little enough to read */
const outputLimit = 64_000_000
/** the transcript is written after this many bytes, so that it does not stay in memory */
const flushAfter = 1_000_000
/** results in a row that answer nothing */
const unaskedLimit = 20
/** messages in the middle of one turn */
const meanwhileLimit = 100

/**
 * Handles what the agent says. If the store fails, a handler throws before it has changed anything that a second call
 * would repeat: the listener calls it again with the same event.
 */
export function createAgentEvents(
  parts: SessionParts,
  answers: Answers,
  lifecycle: Lifecycle,
): Pick<SandboxHandlers, 'onEvent' | 'onBytes'> {
  const { options, ledger, report, sandbox, transcript, isTask } = parts
  let printed = 0
  let unwritten = 0
  let unasked = 0
  let meanwhile = 0
  /** the host interrupted the turn; kept until its end is stored */
  let isInterrupted = false

  /** How many inputs the result answered. */
  const storeResult = (text: string | null, saidAt: number | undefined): number => {
    isInterrupted = lifecycle.withdrawRequest() || isInterrupted
    const isSilent = isInterrupted && (text === null || text.trim() === '')
    const words = isSilent
      ? `I was interrupted, as that took more than ${options.limits.runMs / 1000} s.`
      : text
    // Its inputs have their answer: that a person stopped them.
    const isStopped = ledger.isStopped()
    const turn = ledger.turn(words, options.protocol.namesUsed ? [] : options.input.taken(saidAt))
    const answered = answers.finishTurn(turn, isStopped ? null : words, isSilent ? 'host' : 'agent')
    isInterrupted = false
    if (isStopped) transcript.add('notice', 'A result about stopped messages is not passed on.')
    return answered
  }

  const onResult = (text: string | null, saidAt: number | undefined) => {
    const isFirst = !report.spoke
    const answered = storeResult(text, saidAt)
    if (answered > 0 || (isTask && isFirst)) {
      unasked = 0
      meanwhile = 0
      printed = 0
      parts.calls.hasRoom()
    } else if (++unasked > unaskedLimit) sandbox.kill('it went on talking without being asked')
    if (lifecycle.state() !== 'working') return
    if (!ledger.isAnswered()) {
      // The next turn has its own time; a result that answers nothing gains none.
      if (answered > 0) lifecycle.enter('working')
      return
    }
    lifecycle.enter('idle')
    if ((isTask && !options.protocol.mayGoOn) || parts.isCutOff()) lifecycle.close()
  }

  const onError = (message: string) => {
    report.error = message.slice(0, errorLimit).toWellFormed()
    transcript.add('error', report.error)
    ledger.turnFailed()
  }

  const onScript = (wake: boolean, error: string | undefined) => {
    report.woken = wake
    if (error !== undefined) report.error = error.slice(0, errorLimit)
    transcript.add('script', error ?? (wake ? 'The agent is woken.' : 'The agent is not woken.'))
  }

  const onMessage = (text: string) => {
    if (meanwhile >= meanwhileLimit) sandbox.kill('it sent too many messages in one turn')
    else if (answers.sayMeanwhile(text)) meanwhile++
  }

  /** Shown only where it may become an answer that people get. */
  const onDelta = (text: string) => {
    const state = lifecycle.state()
    if ((state === 'working' || state === 'closing') && !ledger.isStopped()) parts.calls.writes(text)
  }

  const noteSession = (id: string | null) => {
    if (id !== null && id !== '' && id.length <= sessionIdLimit) report.sessionId = id.toWellFormed()
  }

  /** Kept at once: a run that is killed in its first turn says no result with it. */
  const onSession = (id: string) => {
    noteSession(id)
    if (options.keepSession && !report.isForgotten && report.sessionId !== null)
      options.store.setSession(options.group.folder, report.sessionId)
  }

  const onEvent = (event: RunEvent, at: number | undefined): void => {
    switch (event.type) {
      case 'session':
        onSession(event.session_id)
        break
      case 'used':
        ledger.name(event.inputs)
        break
      case 'script':
        onScript(event.wake, event.error)
        break
      case 'step':
        transcript.add(event.kind, event.text, event.name)
        if (event.kind === 'tool_call' && event.name !== undefined) parts.calls.uses(event.name)
        break
      case 'delta':
        onDelta(event.text)
        break
      case 'message':
        onMessage(event.text)
        break
      case 'result':
        noteSession(event.session_id)
        parts.calls.turnOver()
        if (lifecycle.state() === 'stopping') lifecycle.turnEnded()
        else if (unasked <= unaskedLimit) onResult(event.text, at)
        break
      case 'error':
        noteSession(event.session_id)
        parts.calls.turnOver()
        if (lifecycle.state() === 'stopping') lifecycle.turnEnded()
        else onError(event.message)
        lifecycle.close()
    }
  }

  return {
    onEvent,
    onBytes(count) {
      printed += count
      if (printed > outputLimit)
        sandbox.kill(`it printed more than ${outputLimit / 1_000_000} MB in one turn`)
      unwritten += count
      if (unwritten < flushAfter) return
      unwritten = 0
      transcript.flush()
    },
  }
}
