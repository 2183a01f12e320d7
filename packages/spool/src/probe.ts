import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { type PinnedDirectory, pinDirectory } from './directory.ts'

const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

const probePrefix = '.hatchway-probe-'

/** Probes of a process that was killed before it could take them away. */
export function removeOldProbes(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (name.startsWith(probePrefix)) unlinkSync(join(directory, name))
  }
}

/**
 * Whether a file written into the directory rings its bell at all: a probe file is written and taken away again. It
 * shows that this side's events work; that the other side's writes ring too is seen, or not, as they come (a mount
 * whose writes arrive without a ring is polled from then on). Undefined: it could not be asked.
 */
export async function deliversEvents(path: string, waitMs: number): Promise<boolean | undefined> {
  const directory = pinDirectory(path)
  if (typeof directory === 'string') return undefined
  try {
    return await ringsIn(directory, waitMs)
  } finally {
    directory.close()
  }
}

function ringsIn(directory: PinnedDirectory, waitMs: number): Promise<boolean | undefined> {
  const name = `${probePrefix}${randomBytes(6).toString('hex')}`
  return new Promise(resolve => {
    // A busy process may have the event waiting beside the timer: it is given the rest of this round.
    const timer = setTimeout(() => setImmediate(done, false), waitMs)
    const bell = (() => {
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
      bell?.close()
      resolve(answer)
    }
    // That no watch is to be had says nothing about the mount; whoever hangs the bell next is told why.
    if (!bell) return done(true)
    bell.on('error', () => done(undefined))
    try {
      closeSync(openSync(`${directory.path}/${name}`, flags, 0o600))
      unlinkSync(`${directory.path}/${name}`)
    } catch {
      done(undefined)
    }
  })
}
