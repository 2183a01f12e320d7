import type { Group, RunStart, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { LiveTexts } from '../../chat/live-text.ts'
import type { Progress } from '../../chat/progress.ts'
import type { CurrentRun } from '../../commands/types.ts'
import type { Config } from '../../config.ts'
import type { SandboxProcess } from '../../sandboxes/types.ts'
import type { AgentStore, IncomingRow, MessageRow, NewMessage, OccurrenceRow } from '../../store/types.ts'
import type { InputBox } from '../input-box.ts'
import type { Begun, RunEnd } from '../scheduler/types.ts'
import type { Session, SessionState } from '../session.ts'

export interface RunQueue {
  /** something may be waiting */
  kick(): void
  /** resolves when the run has ended; `begin` is asked right before anything of it starts */
  runTask(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  /** the group's current run */
  runOf(folder: string): CurrentRun | undefined
  /** the group's next run does not continue the current agent session */
  forget(folder: string): void
  /** the run counts as done, however it ends */
  finish(folder: string, runId: string): void
  /**
   * Ends the current turn of the group's agent, if it is this run's. False: there is no turn. Throws, with nothing done,
   * if the store fails.
   */
  stopTurn(folder: string, by: string, runId?: string): boolean
  /** asks the run to finish after its current turn; without an id the current run */
  close(folder: string, runId?: string): void
  running(): readonly { runId: string; group: string; kind: RunStart['kind']; state: SessionState }[]
  stop(): Promise<void>
}

export interface RunQueueOptions {
  config: Config
  store: AgentStore
  group(folder: string): Group | undefined
  launch(start: RunStart, group: Group): Promise<SandboxProcess>
  inputBox(group: Group): InputBox
  /** what the group's agent is told beside the instructions of the configuration */
  instructions?(folder: string): readonly string[]
  message(group: Group, text: string, author: 'agent' | 'host'): NewMessage
  /** a message to people is stored */
  said(): void
  /** the agent had to be ended to stop its turn: its next run has to be told */
  cutOff?(group: Group, runId: string, by: string): void
  /** nobody waits any more for what the stopped turn had asked people */
  turnStopped?(folder: string): void
  /** whether something that the group's agent has asked for waits for a person */
  waitsForPeople?(folder: string): boolean
  /** where somebody who wrote a message is, as far as their browser has said it */
  personZone?(row: IncomingRow): string | undefined
  /** what the group's agent has said lately, oldest first */
  lately?(folder: string): readonly MessageRow[]
  /** when the group's files were last wiped: its agent does not know what it had said before */
  wipedAt?(folder: string): number
  /** refusals that the group's agent has not been told of; asking marks them as told */
  refusals?(folder: string): readonly string[]
  /** the container of a run is gone, and with it whoever waited for answers in it */
  gone?(folder: string, runId: string): void
  /** why the run could not reach its model, if so: then it is not tried again */
  modelProblem?(runId: string): string | undefined
  /** resolves once every file in the group's drop directories is decided */
  decided?(folder: string): Promise<void>
  /** whether everything that the group's last run had asked for is decided; if not, `kick` follows when it is */
  mayBegin?(folder: string): boolean
  typing(jid: string, on: boolean): void
  /** what platforms show of an agent at work; left out: nothing */
  progress?: Pick<Progress, 'working' | 'over' | 'replacing'>
  /** what people see of what an agent is writing; left out: nothing */
  liveTexts?: Pick<LiveTexts, 'grow' | 'uses' | 'over'>
  log: Logger
  now(): number
}

/** One occurrence of a task that waits for its run. */
export interface Job {
  occurrence: OccurrenceRow
  task: Task
  begin(runId: string): Begun
  done(end: RunEnd): void
}

export interface QueuedSession extends Session {
  /** whether its group is still the one that it was started for */
  isRegistered(): boolean
  occurrenceId: string | null
}

/** What the queue knows of one group. */
export interface Place {
  folder: string
  session: QueuedSession | undefined
  /** the run before: what it asked for last may still have to be decided */
  last: CurrentRun | undefined
  jobs: Job[]
  /** chat runs in a row that failed; the pause before the next attempt grows with them */
  failures: number
  /** no run begins until the pause after a failure is over */
  isPausing: boolean
  lastWasTask: boolean
}
