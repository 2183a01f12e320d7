import { join } from 'node:path'
import { startChild } from '../children.ts'
import { highestMegabytes } from '../proc.ts'
import { asBigint, asFields, asNumber } from '../shape.ts'

export const loopName = 'bare Node loop'

export interface LoopDrain {
  files: number
  perSecond: number
  /** when the last one was done */
  at: bigint
  /** the most memory it had */
  megabytes: number
}

/** A bare Node loop over `directories`, in a fresh process as the daemon is one. */
export const drainInLoop = async (directories: readonly string[], base: string): Promise<LoopDrain> => {
  const child = startChild(new URL('./loop.process.ts', import.meta.url), 'bare loop')
  try {
    const answer = asFields(await child.call('drain', { directories, done: join(base, 'done') }, 600))
    const files = asNumber(answer.files)
    return {
      files,
      perSecond: files / asNumber(answer.seconds),
      at: asBigint(answer.at),
      megabytes: highestMegabytes(child.pid),
    }
  } finally {
    await child.end()
  }
}
