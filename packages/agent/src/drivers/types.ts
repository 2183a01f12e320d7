import type { RunEvent, RunInput, RunStart } from '@hatchway/protocol'
import type { RunEnvironment } from '../run/environment.ts'

type DriverEvent = Extract<RunEvent, { type: 'session' | 'used' | 'step' | 'delta' | 'result' | 'error' }>

export interface DriverContext {
  start: RunStart
  environment: RunEnvironment
  abort: AbortSignal
  emit(event: DriverEvent): void
}

/**
 * An agent at work. It answers what it is fed in turns; each turn ends with a `result` or an `error`, and what was
 * `used` before that is answered by it.
 */
export interface DriverSession {
  /** in order; reaches the running turn where the agent can take it, else the next one */
  feed(inputs: readonly RunInput[]): void
  /** ends the current turn with a `result` without text; what was fed and not begun with is dropped */
  stopTurn(): void
  /** resolves after the current turn, or at once if there is none; what was fed and not used stays unused */
  finish(): Promise<void>
  /** ends at once, whatever it is doing */
  close(): Promise<void>
  /** resolves when the agent has ended, wanted or not; an end that was not wanted was told as an `error` */
  ended: Promise<void>
}

export type Driver = (context: DriverContext) => Promise<DriverSession>
