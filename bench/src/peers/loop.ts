import { join } from 'node:path'
import { startChild } from '../children.ts'
import { asFields, asNumber } from '../shape.ts'

/** Files per second of a bare Node loop over `directories`, in a fresh process as the daemon is one. */
export const drainInLoop = async (directories: readonly string[], base: string): Promise<number> => {
  const child = startChild(new URL('./loop.process.ts', import.meta.url), 'bare loop')
  try {
    const answer = asFields(await child.call('drain', { directories, done: join(base, 'done') }, 600))
    return asNumber(answer.files) / asNumber(answer.seconds)
  } finally {
    await child.end()
  }
}
