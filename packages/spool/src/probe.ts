import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { type DirectoryHandle, openDirectory } from './directory.ts'

const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const probePrefix = '.hatchway-probe-'

/** Removes probe files of a process that was killed before it could. */
export function removeOldProbes(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (name.startsWith(probePrefix)) unlinkSync(join(directory, name))
  }
}

/**
 * Tests whether writing a file into the directory causes an event. This only proves that events of our own writes
 * arrive. If files of the writer turn out to come without events, the inbox is polled (see polling.ts). Returns
 * undefined if the test is not possible.
 */
export async function deliversEvents(path: string, waitMs: number): Promise<boolean | undefined> {
  const directory = openDirectory(path)
  if (typeof directory === 'string') return undefined
  try {
    return await probe(directory, waitMs)
  } finally {
    directory.close()
  }
}

function probe(directory: DirectoryHandle, waitMs: number): Promise<boolean | undefined> {
  const name = `${probePrefix}${randomBytes(6).toString('hex')}`
  return new Promise(resolve => {
    // In a busy process the event may be queued behind the timer, so it gets the rest of this event loop round.
    const timer = setTimeout(() => setImmediate(done, false), waitMs)
    const watcher = (() => {
      try {
        return watch(directory.path, (_event, seen) => {
          if (seen === name) done(true)
        })
      } catch {
        return undefined
      }
    })()
    const done = (answer: boolean | undefined) => {
      clearTimeout(timer)
      watcher?.close()
      resolve(answer)
    }
    // A refused watcher says nothing about the mount. The next attempt to watch reports the reason.
    if (!watcher) return done(true)
    watcher.on('error', () => done(undefined))
    try {
      closeSync(openSync(`${directory.path}/${name}`, flags, 0o600))
      unlinkSync(`${directory.path}/${name}`)
    } catch {
      done(undefined)
    }
  })
}
