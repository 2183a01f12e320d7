import type { ServerContext } from '@modelcontextprotocol/server'
import { complain, reasonOf } from './failure.ts'

/**
 * Tells a client that asked to be told that the call is still waiting for the host: one that counts the time since it
 * last heard something then waits along.
 */
export function beginProgress({ mcpReq }: ServerContext, everyMs: number): { end(): void } {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return { end: () => {} }
  const begin = performance.now()
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - begin) / 100) / 10
    mcpReq
      .notify({
        method: 'notifications/progress',
        params: { progressToken, progress: seconds, message: `waiting for the host, ${seconds} s` },
      })
      .catch((error: unknown) => complain(`progress could not be told: ${reasonOf(error)}`))
  }, everyMs)
  return { end: () => clearInterval(timer) }
}
