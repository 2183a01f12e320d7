import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { reasonOf } from '@hatchway/spool'
import { forgetLockOwner, writeLockOwner } from './announce.ts'
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
  readonly lockOwner: LockOwner | undefined

  constructor(dataDirectory: string, lockOwner: LockOwner | undefined) {
    super(`The data directory ${dataDirectory} is held by ${describe(lockOwner)}.`)
    this.dataDirectory = dataDirectory
    this.lockOwner = lockOwner
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
    writeLockOwner(dataDirectory, {
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
      forgetLockOwner(dataDirectory)
      lock.release()
    },
  }
  locks.add(held)
  return held
}

/** A new owner has the lock an instant before it has written who it is, over the words of one that was killed. */
async function introduced(dataDirectory: string): Promise<LockOwner | undefined> {
  const deadline = performance.now() + introductionMs
  for (;;) {
    const lockOwner = readLockOwner(dataDirectory)
    if (lockOwner && mayBeAlive(lockOwner)) return lockOwner
    if (performance.now() >= deadline) return undefined
    await sleep(retryMs)
  }
}

function mayBeAlive(lockOwner: LockOwner): boolean {
  if (lockOwner.hostname !== hostname()) return true
  try {
    process.kill(lockOwner.pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}

function describe(lockOwner: LockOwner | undefined): string {
  if (!lockOwner) return 'a process that has not said who it is'
  const where = lockOwner.hostname === hostname() ? '' : ` on ${lockOwner.hostname}`
  const kind = lockOwner.what === 'daemon' ? 'a daemon' : 'a command'
  return `${kind}, process ${lockOwner.pid}${where}, since ${lockOwner.since}`
}
