import { errorCode } from '@hatchway/spool'
import type { SessionParts } from './parts.ts'
import type { SessionState } from './types.ts'

/**
 * The state of a session, its one alarm, and the requests that the host makes of the agent: finish, end the turn.
 * `session.ts` has the table of states.
 */
export interface Lifecycle {
  state(): SessionState
  enter(next: SessionState): void
  /** asks the agent to finish, after its current turn */
  close(): void
  /** whether there is a turn that a person could stop */
  hasTurn(): boolean
  /** a person stopped the turn, which is stored already */
  stopTurn(by: string): void
  /** the stopped turn is over */
  turnEnded(): void
  /** takes back a request to end the turn; false: there is none */
  withdrawRequest(): boolean
  /** who stopped the turn, if the run ended by that */
  stoppedBy(): string | undefined
}

/** What may follow a state; `session.ts` says when. A state may follow itself: its alarm begins anew. */
const nextStates: Readonly<Record<SessionState, readonly SessionState[]>> = {
  working: ['working', 'idle', 'stopping', 'closing', 'ended'],
  idle: ['idle', 'working', 'closing', 'ended'],
  stopping: ['stopping', 'idle', 'closing', 'ended'],
  closing: ['closing', 'ended'],
  ended: ['ended'],
}

/** how often the host checks whether a person has decided, once the turn's own time is over */
const waitingCheckMs = 1000

export function createLifecycle(parts: SessionParts): Lifecycle {
  const { options, sandbox, calls, transcript, isTask, about } = parts
  const { input, limits, protocol, log } = options
  let state: SessionState = 'working'
  let timer: NodeJS.Timeout | undefined
  /** takes back the request to end the turn; undefined: there is none */
  let withdraw: (() => void) | undefined
  let stoppedBy: string | undefined

  const alarmIn = (ms: number, onAlarm: () => void) => {
    clearTimeout(timer)
    timer = setTimeout(() => sandbox.isGone() || onAlarm(), ms)
  }
  const setAlarm: Readonly<Record<SessionState, () => void>> = {
    working: () => alarmIn(limits.runMs, turnTooLong),
    idle: () => alarmIn(limits.idleMs, close),
    stopping: () => alarmIn(limits.closeMs, () => cutOff('it did not stop when asked to')),
    closing() {
      // Where the end of a turn is not known for certain, the agent may be in the middle of one.
      const ms = protocol.mayGoOn ? Math.max(limits.runMs, limits.closeMs) : limits.closeMs
      alarmIn(ms, () => sandbox.kill(`it did not finish within ${ms / 1000} s of being asked to`))
    },
    ended() {},
  }
  const enter = (next: SessionState) => {
    // Nothing may throw here: the session stays what it is, and whoever reads the log finds the fault.
    if (!nextStates[state].includes(next))
      return log.error({ state, next, ...about }, 'a session cannot go there')
    clearTimeout(timer)
    if (!sandbox.isGone()) setAlarm[next]()
    if (state === next) return
    state = next
    calls.changed(next)
  }

  const close = () => {
    if (sandbox.isGone() || (state !== 'idle' && state !== 'working')) return
    enter('closing')
    try {
      input.close()
    } catch (error) {
      // The disk is full, or the agent has put a directory in that place. Nothing is lost by ending it.
      log.warn({ err: error, ...about }, 'a session could not be asked to finish and is ended')
      sandbox.kill(`it could not be asked to finish (${errorCode(error)})`)
    }
  }

  /** The time that a person takes is not the agent's: afterwards the turn has all of its own time again. */
  const turnTooLong = () => {
    if (!calls.waitsForPeople()) return interrupt()
    const check = () =>
      calls.waitsForPeople() ? alarmIn(waitingCheckMs, check) : alarmIn(limits.runMs, turnTooLong)
    check()
  }
  const interrupt = () => {
    const reason = `it worked on one turn for more than ${limits.runMs / 1000} s`
    if (!request(input.interrupt)) return sandbox.kill(reason)
    transcript.add('notice', `The turn is interrupted: ${reason}.`)
    alarmIn(limits.closeMs, () => sandbox.kill(reason))
  }
  /** whether the agent could be asked to end its turn */
  const request = (ask: () => (() => void) | undefined): boolean => {
    try {
      withdraw = ask()
    } catch (error) {
      log.warn({ err: error, ...about }, 'a session could not be asked to end its turn')
    }
    return withdraw !== undefined
  }
  const cutOff = (reason: string) => {
    if (stoppedBy === undefined || sandbox.isGone() || sandbox.killedBecause() !== undefined) return
    calls.cutOff(stoppedBy)
    sandbox.kill(reason)
  }
  /** A request that the agent finds too late would end its next turn. */
  const withdrawRequest = (): boolean => {
    if (!withdraw) return false
    try {
      withdraw()
    } catch (error) {
      log.warn({ err: error, ...about }, 'a request to end a turn could not be taken back')
    }
    withdraw = undefined
    return true
  }

  return {
    state: () => state,
    enter,
    close,
    hasTurn: () => !sandbox.isGone() && state === 'working' && sandbox.killedBecause() === undefined,
    stopTurn(by) {
      stoppedBy = by
      calls.turnStopped()
      enter('stopping')
      if (!request(input.stop)) cutOff('it cannot be asked to stop')
    },
    turnEnded() {
      withdrawRequest()
      // A task is nothing but its one turn, so it stays stopped.
      if (!isTask) stoppedBy = undefined
      enter('idle')
      // What the agent asked for at its last moment may be read only now.
      calls.turnStopped()
      if (isTask || parts.isCutOff()) close()
      else calls.hasRoom()
    },
    withdrawRequest,
    stoppedBy: () => stoppedBy,
  }
}
