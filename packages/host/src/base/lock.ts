import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { reasonOf } from '@hatchway/spool'
import { forgetHolder, writeHolder } from './announce.ts'
import { type FileLock, tryLockFile } from './lock-file.ts'
import { type LockOwner, readLockOwner, stateDirectory } from './lock-owner.ts'

/**
 * One owner per data directory (promise 3), daemon or command, decided by a lock that dies with its
 * process. Who the owner is stands in a file beside it, for the sentence that the loser prints.
 */
export interface Lock {
  release(): void
}

export class DataDirectoryHeld extends Error {
  override name = 'DataDirectoryHeld'
  readonly dataDirectory: string
  /** undefined: whoever it is has not said so yet */
  readonly holder: LockOwner | undefined

  constructor(dataDirectory: string, holder: LockOwner | undefined) {
    super(`The data directory ${dataDirectory} is held by ${describe(holder)}.`)
    this.dataDirectory = dataDirectory
    this.holder = holder
  }
}

export class DataDirectoryUnusable extends Error {
  override name = 'DataDirectoryUnusable'
}

export interface AcquireOptions {
  /** how long to wait for the other one to finish; 0: not at all */
  waitMs?: number
  purpose?: LockOwner['what']
}

const retryMs = 20

/** Whoever forgets a lock still has it: the collector must not let go of the file for them. */
const locks = new Set<Lock>()
const introductionMs = 500

export async function acquire(
  dataDirectory: string,
  { waitMs = 0, purpose = 'command' }: AcquireOptions = {},
): Promise<Lock> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const lock = take(dataDirectory, purpose)
    if (lock) return lock
    if (performance.now() >= deadline) throw await heldBy(dataDirectory)
    await sleep(retryMs)
  }
}

/** Whether nobody has the directory, at this moment. */
export function isFree(dataDirectory: string): boolean {
  const lock = lockState(dataDirectory)
  lock?.release()
  return lock !== undefined
}

export const heldBy = async (dataDirectory: string) =>
  new DataDirectoryHeld(dataDirectory, await introduced(dataDirectory))

function lockState(dataDirectory: string): FileLock | undefined {
  const state = stateDirectory(dataDirectory)
  try {
    // What lies in here decides what agents may do: nobody else's eyes, nobody else's hands.
    mkdirSync(state, { recursive: true, mode: 0o700 })
    return tryLockFile(join(state, 'daemon.lock'))
  } catch (error) {
    const reason = reasonOf(error)
    throw new DataDirectoryUnusable(
      `The data directory ${dataDirectory} cannot be used: ${reason}. Check that it may be written to.`,
      { cause: error },
    )
  }
}

function take(dataDirectory: string, what: LockOwner['what']): Lock | undefined {
  const lock = lockState(dataDirectory)
  if (!lock) return undefined
  try {
    writeHolder(dataDirectory, {
      pid: process.pid,
      what,
      since: new Date().toISOString(),
      hostname: hostname(),
    })
  } catch (error) {
    lock.release()
    throw error
  }
  const held: Lock = {
    release() {
      locks.delete(held)
      forgetHolder(dataDirectory)
      lock.release()
    },
  }
  locks.add(held)
  return held
}

/** A new holder has the lock an instant before it has written who it is, over the words of one that was killed. */
async function introduced(dataDirectory: string): Promise<LockOwner | undefined> {
  const deadline = performance.now() + introductionMs
  for (;;) {
    const holder = readLockOwner(dataDirectory)
    if (holder && mayBeAlive(holder)) return holder
    if (performance.now() >= deadline) return undefined
    await sleep(retryMs)
  }
}

function mayBeAlive(holder: LockOwner): boolean {
  if (holder.hostname !== hostname()) return true
  try {
    process.kill(holder.pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

function describe(holder: LockOwner | undefined): string {
  if (!holder) return 'a process that has not said who it is'
  const where = holder.hostname === hostname() ? '' : ` on ${holder.hostname}`
  const kind = holder.what === 'daemon' ? 'a daemon' : 'a command'
  return `${kind}, process ${holder.pid}${where}, since ${holder.since}`
}
