import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { markVariable } from '../base/processes.ts'

/** The supervisor of this process, if it has one. */
export interface Supervisor {
  /** the file through which it is spoken to */
  handover: string
  pid: number
}

/** What a supervised process knows: who starts it again, and how it ends so that this happens. */
export interface Supervision {
  supervisor: Supervisor
  /** ends this process, gracefully; `code` is for whoever looks at it */
  restart(code: number): void
}

/**
 * Taken out of the environment, so that no program that this one starts, such as a daemon in somebody's tests, believes
 * that it is the one that is supervised.
 */
export function takeSupervisor(environment: NodeJS.ProcessEnv): Supervisor | undefined {
  const { HATCHWAY_HANDOVER: handover, HATCHWAY_SUPERVISOR: pid } = environment
  if (!handover || !pid) return undefined
  delete environment.HATCHWAY_HANDOVER
  delete environment.HATCHWAY_SUPERVISOR
  delete environment[markVariable]
  return { handover, pid: Number(pid) }
}

/** A supervisor of another data directory cannot be told anything. */
export function isFor(supervisor: Supervisor, handover: string): boolean {
  try {
    return realpathSync(dirname(supervisor.handover)) === realpathSync(dirname(handover))
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}

const pollMs = 1000

/**
 * For a daemon that the supervisor has started through a program of the operator's: without a channel between them,
 * it has to look whether the supervisor still lives.
 */
export function whenSupervisorEnds({ pid }: Supervisor, then: () => void): void {
  if (!isAlive(pid)) return
  const timer = setInterval(() => {
    if (isAlive(pid)) return
    clearInterval(timer)
    then()
  }, pollMs).unref()
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
