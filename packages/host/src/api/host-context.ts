import type { Host } from './host.ts'
import { routesWith } from './route.ts'

/** What routes about the host need to be answered. */
export interface HostContext {
  host: Host
  /** ends the event streams */
  signal: AbortSignal
  heartbeatMs: number
  /** what a reader of an event stream may be behind */
  eventBufferBytes: number
}

export const hostRoute = routesWith<HostContext>()
