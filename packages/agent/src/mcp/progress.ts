import type { Progress } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { complain } from './failure.ts'
import type { CallContext } from './tool.ts'

export interface ProgressTeller {
  /** undefined: the client does not want to know */
  report: ((step: Progress) => void) | undefined
  end(): void
}

/**
 * Tells a client that asked to be told how far the host has come. Where there is nothing to report it hears all the same
 * that the call is waiting: one that counts the time since it last heard something then waits along.
 *
 * Progress must rise with every word of it. What the host counts is passed on as it is; to repeat the last word, or to
 * pass one on that does not rise, the least is added that still can be told from what was said before.
 */
export function beginProgress({ mcpReq }: CallContext, everyMs: number): ProgressTeller {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return { report: undefined, end: () => {} }
  const begin = performance.now()
  let said = 0
  let last: Pick<Progress, 'total' | 'message'> | undefined

  const say = (progress: number, { total, message }: Pick<Progress, 'total' | 'message'>) => {
    if (!Number.isFinite(progress)) return
    said = progress
    mcpReq
      .notify({
        method: 'notifications/progress',
        params: {
          progressToken,
          progress,
          ...(total === undefined ? {} : { total }),
          ...(message === undefined ? {} : { message }),
        },
      })
      .catch((error: unknown) => complain(`progress could not be reported: ${reasonOf(error)}`))
  }
  const repeat = () => {
    const seconds = Math.round((performance.now() - begin) / 100) / 10
    say(barelyMoreThan(said), last ?? { message: `waiting for the host, ${seconds} s` })
  }
  const timer = setInterval(repeat, everyMs)
  return {
    report(step) {
      last = step
      say(step.progress > said ? step.progress : barelyMoreThan(said), step)
      timer.refresh()
    },
    end: () => clearInterval(timer),
  }
}

const barelyMoreThan = (progress: number): number => progress + Math.max(1e-6, progress * 1e-12)
