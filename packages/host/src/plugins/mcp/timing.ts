import { backoff } from '../../base/retry.ts'

/** How patient the host is with a lent server. */
export interface Timing {
  /** from its start until it has said who it is; `npx` may have to fetch it first */
  connectMs: number
  /** for each page of its tools */
  listMs: number
  /** for a sign of life, when a call got none */
  pingMs: number
  /** a call waits so long for a server that is being started again */
  waitMs: number
  /** for an end of its own accord, and again after SIGTERM */
  graceMs: number
  /** between two starts, after so many that failed */
  pauseMs(failures: number): number
  /** up for so long, it starts with the shortest pause again */
  steadyMs: number
  /** between the word that its tools are others and the look at them */
  settleMs: number
}

export const usualTiming: Timing = {
  connectMs: 60_000,
  listMs: 30_000,
  pingMs: 5000,
  waitMs: 5000,
  graceMs: 2000,
  pauseMs: backoff({ firstMs: 250, longestMs: 60_000, factor: 4 }),
  steadyMs: 60_000,
  settleMs: 250,
}
