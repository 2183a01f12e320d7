import { realpathSync, statSync } from 'node:fs'
import { resolve, sep } from 'node:path'
import type { HostJob } from '@hatchway/protocol'
import { type Refused, refused } from '../../base/outcome.ts'
import { type Account, ownAccount } from './accounts.ts'
import type { HostJobsSettings } from './settings.ts'

export interface JobRules {
  /** with the usual directory and user where it names none, or why it may not run as things are now */
  settle(job: HostJob): HostJob | Refused
}

/**
 * What the configuration lets jobs do: asked when one is scheduled, and again each time before it runs. Undefined: it
 * lets none run. The answer to whoever asks never tells which other directories there are.
 */
export function createJobRules(
  { enabled, directories, users, longestSeconds }: HostJobsSettings,
  runsAgents: boolean,
  whom: () => Pick<Account, 'name' | 'uid'> = ownAccount,
): JobRules | undefined {
  if (enabled === 'no' || !runsAgents) return undefined
  const [usualDirectory] = directories
  const own = whom()

  const problemWithUser = (user: string | null): Refused | undefined => {
    if (own.uid === 0 && users.length === 0) {
      return refused(
        'unavailable',
        'This host runs as root, so hostJobs.users has to name the users that jobs may run as.',
      )
    }
    if (user === null) return undefined
    if (!(users.length === 0 ? user === own.name : users.includes(user))) {
      return refused('forbidden', 'user: is not in hostJobs.users.')
    }
    return own.uid === 0 || user === own.name
      ? undefined
      : refused('unavailable', 'user: only a host that runs as root can run jobs as another user.')
  }

  return {
    settle(job) {
      if (usualDirectory === undefined) {
        return refused('unavailable', 'No directory is configured for host jobs. Set hostJobs.directories.')
      }
      const user = job.user ?? users[0] ?? null
      const problem = problemWithUser(user)
      if (problem) return problem
      if (job.timeout_seconds > longestSeconds) {
        return refused('invalid_field', `timeout_seconds: must be at most ${longestSeconds} on this host.`)
      }
      const cwd = allowed(resolve(usualDirectory, job.cwd ?? ''), directories)
      // The same words whether it is elsewhere or nowhere: which directories there are is not told this way.
      return cwd === undefined
        ? refused('forbidden', 'cwd: is not a directory that hostJobs.directories allows.')
        : ({ ...job, cwd, user } satisfies HostJob)
    },
  }
}

/** As the kernel resolves it, if that is one of these directories or lies below one. */
function allowed(path: string, directories: readonly string[]): string | undefined {
  const real = directoryAt(path)
  if (real === undefined) return undefined
  return directories.some(directory => {
    const parent = directoryAt(directory)
    return (
      parent !== undefined &&
      (real === parent || real.startsWith(parent.endsWith(sep) ? parent : parent + sep))
    )
  })
    ? real
    : undefined
}

function directoryAt(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    return statSync(real).isDirectory() ? real : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}
