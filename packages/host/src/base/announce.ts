import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { type LockOwner, lockOwnerFile, readLockOwner, stateDirectory } from './lock-owner.ts'

/** Says who has the data directory. Only for the one who has. */
export function writeLockOwner(dataDirectory: string, lockOwner: LockOwner): void {
  const state = stateDirectory(dataDirectory)
  post(state, `${JSON.stringify(lockOwner, null, 2)}\n`, { name: lockOwnerFile, staging: state, mode: 0o600 })
}

/** Adds what others have to know, if it is us who have the data directory. */
export function announce(
  dataDirectory: string,
  what: Pick<LockOwner, 'socket'> | Pick<LockOwner, 'webPort' | 'webUrl'>,
): void {
  const lockOwner = readLockOwner(dataDirectory)
  if (lockOwner?.pid === process.pid) writeLockOwner(dataDirectory, { ...lockOwner, ...what })
}

export const forgetLockOwner = (dataDirectory: string) =>
  rmSync(join(stateDirectory(dataDirectory), lockOwnerFile), { force: true })
