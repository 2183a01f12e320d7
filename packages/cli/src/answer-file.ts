import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDirectory } from '@hatchway/spool'

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const largest = 16_777_216
const lookMs = 20

/** Waits for the answer to a request, as an agent does: by looking for the file. Undefined: none came in time. */
export async function waitForAnswer(
  directory: string,
  id: string,
  seconds: number,
): Promise<Record<string, unknown> | undefined> {
  const deadline = performance.now() + seconds * 1000
  for (;;) {
    const answer = readAnswer(directory, id)
    if (answer) return answer
    if (performance.now() >= deadline) return undefined
    await sleep(lookMs)
  }
}

/** The directory is the container's to write to, so what lies there is not simply read. */
function readAnswer(directory: string, id: string): Record<string, unknown> | undefined {
  const pinned = openDirectory(directory)
  if (typeof pinned === 'string') return undefined
  try {
    const fd = openSync(`${pinned.path}/${id}.json`, flags)
    try {
      const stat = fstatSync(fd)
      if (!stat.isFile() || stat.size > largest) return undefined
      const answer: unknown = JSON.parse(readFileSync(fd, 'utf8'))
      return typeof answer === 'object' && answer !== null ? { ...answer } : undefined
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ELOOP'))
      return undefined
    throw error
  } finally {
    pinned.close()
  }
}
