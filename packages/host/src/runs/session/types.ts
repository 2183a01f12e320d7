import type { Group, RunStart } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { SandboxProcess } from '../../sandboxes/types.ts'
import type { AgentStore, IncomingRow, NewMessage, RunRow } from '../../store/types.ts'
import type { ContainerProtocol } from '../container-protocols/types.ts'
import type { InputBox } from '../input-box.ts'

/** `session.ts` explains the states and their transitions. */
export type SessionState = 'working' | 'idle' | 'stopping' | 'closing' | 'ended'

export interface SessionEnd {
  /** undefined: the run ended as it should */
  error: string | undefined
  /** what the agent said last */
  result: string | null
  /** whether the agent answered any of its inputs */
  answered: boolean
  /** false: the task's script decided that the agent is not needed */
  woken: boolean
  /** the disk or the database kept the run from starting; it is started again until that is over */
  hadNoRoom: boolean
}

export interface Session {
  runId: string
  group: string
  kind: RunStart['kind']
  state(): SessionState
  /** how many follow-ups it takes at the moment */
  room(): number
  /** hands follow-ups to the running agent. Throws, with nothing done, if the store fails. */
  feed(rows: readonly IncomingRow[]): void
  /** whether all of its inputs came from a deploy */
  isByDeploy(): boolean
  /** the group's next run does not continue this agent session */
  forget(): void
  /** the run counts as done, however it ends */
  finish(): void
  /**
   * Ends the current turn; people are told at once. False: there is no turn. Throws, with nothing done, if the store
   * fails.
   */
  stopTurn(by: string): boolean
  /** asks the agent to finish, after its current turn */
  close(): void
  /** ends the sandbox now; unanswered inputs wait for the next host */
  kill(reason: string): void
  /** never rejects */
  ended: Promise<SessionEnd>
}

/** Calls in which the session reports what happened. An error that one of them throws is logged and changes nothing. */
export interface SessionListeners {
  /** a message to people is stored */
  said(): void
  changed(state: SessionState): void
  /** the agent uses a tool */
  uses?(tool: string): void
  /** the next words of what the agent is writing, for people who look on */
  writes?(words: string): void
  /** the agent has ended a turn */
  turnOver?(): void
  /** the sandbox had to be ended to stop the turn: the next run has to be told */
  cutOff(by: string): void
  /** nobody waits any more for what the stopped turn had asked people; called at the stop, and again when the turn has ended */
  turnStopped?(): void
  /** the session may take more follow-ups than before */
  hasRoom(): void
}

export interface SessionOptions extends SessionListeners {
  start: RunStart
  group: Group
  /** the stored messages behind the first inputs; none for a task */
  rows: readonly IncomingRow[]
  /** whether the group's next run continues this agent session */
  keepSession: boolean
  protocol: ContainerProtocol
  launch(): Promise<SandboxProcess>
  input: InputBox
  store: AgentStore
  run: RunRow
  /** the message that carries words of the agent, or of the host about it, to people; undefined: its group is gone */
  say(text: string, author: 'agent' | 'host'): NewMessage | undefined
  /** whether something that the agent asked for waits for a person */
  waitsForPeople?(): boolean
  /** what the host tells the agent with its next follow-up; asking marks it as told */
  notices?(): readonly string[]
  /** resolves once every file in the group's drop directories is decided */
  decided?(): Promise<void>
  /** what people are told after this failure; undefined: the run is tried again */
  giveUp(error: string): string | undefined
  limits: { idleMs: number; runMs: number; closeMs: number }
  log: Pick<Logger, 'warn' | 'error'>
  now(): number
}

/** What the run has come to so far. */
export interface RunReport {
  /** the agent's own name for its conversation */
  sessionId: string | null
  result: string | null
  /** the agent has ended a turn, whether that answered something or not */
  spoke: boolean
  answered: boolean
  woken: boolean
  /** the last error that the agent reported itself */
  error: string | undefined
  /** the run counts as done, however it ends */
  isFinished: boolean
  /** the group's next run does not continue this agent session; silence is then no failure */
  isForgotten: boolean
  /** a follow-up could not be handed over, so later ones must not overtake it */
  isInboxBlocked: boolean
  /** the host ended the session; `wasIdle`: nothing was left to do */
  endedByHost: { wasIdle: boolean } | undefined
}
