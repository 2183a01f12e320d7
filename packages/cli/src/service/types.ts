import type { Programs, Report } from './machine.ts'
import type { UnitContent } from './texts.ts'

export type Scope = 'system' | 'user'

interface ServiceState {
  running: boolean
  /** it starts with the machine, or when the person logs in */
  enabled: boolean
  since: string | null
  last_exit: string | null
}

/** systemd or launchd, for one service. */
export interface Manager {
  kind: 'systemd' | 'launchd'
  scope: Scope
  name: string
  /** the unit */
  file: string
  environmentFile: string
  /** only launchd writes one; systemd has its journal */
  logFile: string | undefined
  text(content: Omit<UnitContent, 'logFile'>): string
  /** why no service can be set up here; undefined: it can */
  problem(programs: Programs): Promise<string | undefined>
  /** what has to be there before the first question */
  prepare(programs: Programs, report: Report): Promise<void>
  state(programs: Programs): Promise<ServiceState>
  /** `changed`: the unit has just been written. Starts the service, or restarts it if it was changed. */
  start(programs: Programs, before: ServiceState, changed: boolean): Promise<void>
  /** the program that restarts the service, and its arguments */
  restart: readonly [string, ...string[]]
  /** stops the service for good; the unit is deleted next */
  stop(programs: Programs): Promise<void>
  /** after the unit was deleted */
  forget(programs: Programs): Promise<void>
  /** the program that prints the log, and its arguments */
  logs(lines: number, follow: boolean): readonly [string, ...string[]]
}
