import { existsSync } from 'node:fs'
import { Failure, usageError } from '../failure.ts'
import { flag, parsed, positive, text, withDefault } from '../inputs.ts'
import { createLaunchd } from './launchd.ts'
import type { Machine } from './machine.ts'
import { createSystemd } from './systemd.ts'
import type { Manager, Scope } from './types.ts'

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
