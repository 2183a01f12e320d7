import type { Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Retries } from '../../base/retry.ts'
import type { Config } from '../../config.ts'
import type { OccurrenceRow, Store } from '../../store/types.ts'

export interface RunEnd {
  status: 'done' | 'failed' | 'skipped'
  result: string | null
  error: string | null
}

/** The task as it is at that moment, or why it is not to be run any more; that is noted already. */
export type Begun = { ok: true; task: Task } | { ok: false; reason: string }

/** Tasks that run something else than an agent. */
export interface TaskKind {
  /** whether the task is of this kind */
  takes(task: Task): boolean
  /** why it may not run now, if so */
  mayRun(task: Task): string | undefined
  run: SchedulerOptions['run']
  /** ends what an earlier process left, before anything runs */
  recover?(installation: string): Promise<void>
  stop?(): Promise<void>
}

export interface SchedulerOptions {
  store: Store
  config: { agents: Pick<Config['agents'], 'missed'> }
  log: Logger
  clock: Clock
  retries: Pick<Retries, 'untilStored'>
  /**
   * Runs one occurrence, perhaps after waiting for a free place. It calls `begin` right before anything of it starts,
   * and starts nothing if that says no.
   */
  run(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  /** why a task may not run now, if so */
  mayRun(task: Task): string | undefined
  /** what a group's agents see of their tasks is different now */
  changed?(folder: string): void
}
