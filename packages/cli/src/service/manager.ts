import { existsSync } from 'node:fs'
import { Failure, usageError } from '../failure.ts'
import { flag, parsed, positive, text, withDefault } from '../inputs.ts'
import { createLaunchd } from './launchd.ts'
import type { Machine, Programs, Report } from './machine.ts'
import { createSystemd } from './systemd.ts'
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

export const usualName = 'hatchway'

export const serviceInputs = {
  user: flag('the service of the person who is logged in (default, unless you are root)'),
  system: flag('the service of the whole machine (default for root)'),
  name: withDefault(text('name', 'the service’s name, for a second one'), usualName),
}

/** For commands that start the daemon. */
export const timeout = withDefault(
  parsed('seconds', 'how long the daemon may take until it is ready', positive),
  60,
)

interface Asked {
  user: boolean | undefined
  system: boolean | undefined
  name: string | undefined
}

/** `existing`: without --user and --system, the one that is installed. */
export function findManager(
  { user, system, name = usualName }: Asked,
  machine: Machine,
  { existing = false }: { existing?: boolean } = {},
): Manager {
  if (user && system) throw usageError('Choose one of --user and --system.')
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name))
    throw usageError('--name: use letters, digits, - and _.')
  const create =
    machine.platform === 'linux' ? createSystemd : machine.platform === 'macos' ? createLaunchd : undefined
  if (create === undefined)
    throw new Failure(
      `Services are set up with systemd and launchd only. Have what starts programs on this system run: hatchway supervise`,
    )
  const usual: Scope = system ? 'system' : user ? 'user' : machine.uid === 0 ? 'system' : 'user'
  const made = create(machine, usual, name)
  if (!existing || user || system || existsSync(made.file)) return made
  const other = create(machine, usual === 'user' ? 'system' : 'user', name)
  return existsSync(other.file) ? other : made
}
