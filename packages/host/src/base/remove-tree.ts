import { randomUUID } from 'node:crypto'
import { lstatSync, opendirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type DirectoryHandle, openDirectory } from '@hatchway/spool'
import { platform } from './platform.ts'

/**
 * Removes what an agent may have filled, also where it has locked a directory against us. Whoever filled it may still be
 * at it, in a container that is not ours to end: a directory that becomes a link meanwhile is not gone through. Only its
 * parent has to be ours alone.
 */
export async function removeTree(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isDirectory()) return unlinkSync(path)
  await empty(path)
  rmdirSync(path)
}

/** so many entries before others have their turn: an agent may leave a million */
const atATime = 200
/** so often it is looked again whether it is empty; more than that, and somebody is filling it */
const passes = 1_000_000

/**
 * By its handle, and never through a link: the directory is the container's to change, and whatever it has left there
 * must not keep the next run from starting. A directory within is dissolved: its files go, and its own directories come
 * up to be met in the next pass, so that no depth of them is too much for us.
 */
export async function empty(path: string): Promise<void> {
  const top = openUnlocked(path)
  if (!top) return
  const mark = `.gone-${randomUUID()}-`
  let count = 0
  const removeAll = async (directory: DirectoryHandle): Promise<boolean> => {
    // Any bytes can be a name, and every byte is a character of this encoding.
    const entries = opendirSync(directory.path, { encoding: 'latin1' })
    let found = false
    try {
      for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
        found = true
        const name = Buffer.from(entry.name, 'latin1')
        const at = Buffer.concat([Buffer.from(`${directory.path}/`), name])
        if (!lstatSync(at, { throwIfNoEntry: false })?.isDirectory()) remove(at)
        else if (directory !== top || !entry.name.startsWith(mark)) {
          // To be moved, it has to be writable itself.
          if (directory !== top) platform.unlockDirectory(at)
          renameSync(at, `${top.path}/${mark}${++count}`)
        } else await dissolve(`${top.path}/${entry.name}`)
        if (++count % atATime === 0) await nextTurn()
      }
    } finally {
      entries.closeSync()
    }
    return found
  }
  const dissolve = async (at: string) => {
    const directory = openUnlocked(at)
    if (!directory) return
    try {
      await removeAll(directory)
    } finally {
      directory.close()
    }
    rmdirSync(at)
  }
  try {
    for (let pass = 0; await removeAll(top); pass++) {
      if (pass > passes) throw new Error(`${basename(path)}/ cannot be emptied: somebody keeps filling it.`)
    }
  } finally {
    top.close()
  }
}

/** undefined: there is none. One that its owner has locked is unlocked: nobody may shut out what is for the next run. */
export function openUnlocked(path: string): DirectoryHandle | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() && (found.mode & 0o700) !== 0o700) platform.unlockDirectory(path)
  const directory = openDirectory(path)
  if (directory === 'missing') return undefined
  if (typeof directory !== 'string') return directory
  throw new Error(`${basename(path)}/ cannot be emptied: it is ${directory.replaceAll('_', ' ')}.`)
}

export function remove(path: Buffer): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
