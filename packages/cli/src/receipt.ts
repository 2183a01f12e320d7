import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { openDirectory } from '@hatchway/spool'
import { poll } from './poll.ts'

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const largest = 16_777_216
const pollMs = 20

type Receipt = Record<string, unknown>

/** Waits for the receipt of a request as an agent does, by looking for the file. Undefined: none came in time. */
export const waitForReceipt = (
  directory: string,
  id: string,
  seconds: number,
): Promise<Receipt | undefined> =>
  poll(() => readReceipt(directory, id), { everyMs: pollMs, timeoutMs: seconds * 1000 })

/** The container can write to this directory, so links, devices and huge files in it are not read. */
function readReceipt(directory: string, id: string): Receipt | undefined {
  const handle = openDirectory(directory)
  if (typeof handle === 'string') return undefined
  try {
    const fd = openSync(`${handle.path}/${id}.json`, flags)
    try {
      const stat = fstatSync(fd)
      if (!stat.isFile() || stat.size > largest) return undefined
      const receipt: unknown = JSON.parse(readFileSync(fd, 'utf8'))
      return typeof receipt === 'object' && receipt !== null ? { ...receipt } : undefined
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ELOOP'))
      return undefined
    throw error
  } finally {
    handle.close()
  }
}
