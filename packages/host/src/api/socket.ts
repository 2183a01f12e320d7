import { lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLockOwner, stateDirectory } from '../base/lock-owner.ts'
import { platform } from '../base/platform.ts'

const fits = (path: string) => Buffer.byteLength(path) <= platform.longestSocketPath

export const usualSocket = (dataDirectory: string) => join(stateDirectory(dataDirectory), 'api.sock')

/** Where the daemon says it listens; it may be long gone. */
export const announcedSocket = (dataDirectory: string) =>
  readLockOwner(dataDirectory)?.socket ?? usualSocket(dataDirectory)

/** A place to listen at in stead of a path that is too long: in a new directory that only we may enter. */
export function placeFor(path: string): { path: string; remove(): void } {
  if (fits(path)) return { path, remove: () => {} }
  const parent = [tmpdir(), '/tmp'].find(place => fits(join(place, 'hatchway-XXXXXX', 'api.sock')))
  if (parent === undefined)
    throw new Error(`${path} is too long for a socket, and so is everything in ${tmpdir()}`)
  const directory = mkdtempSync(join(parent, 'hatchway-'))
  return {
    path: join(directory, 'api.sock'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** Whoever left it there is dead: the data directory is ours. Anything else than a socket is not removed. */
export function removeStaleSocket(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path} is in the way: it is not a socket. Move it elsewhere.`)
  rmSync(path)
}
