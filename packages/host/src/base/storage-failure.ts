/** The disk or the database failed, not the work that was asked of it: the same work may succeed later. */
export class StoreFailure extends Error {
  override name = 'StoreFailure'
}

const constraint = 19
/** The disk is full, over its quota, broken or read-only, or too many files are open: none of it is the work's fault. */
const failingDisk: ReadonlySet<unknown> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'EROFS',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
])

/** Whether the disk or the database failed, so that the same work may succeed later. */
export function isStorageFailure(error: unknown): error is Error {
  if (error instanceof StoreFailure) return true
  if (!(error instanceof Error && 'code' in error)) return false
  if (error.code !== 'ERR_SQLITE_ERROR') return failingDisk.has(error.code)
  // A constraint that is hurt is a fault of the work; anything else SQLite complains about is the disk's or its own.
  return !('errcode' in error && typeof error.errcode === 'number' && error.errcode % 256 === constraint)
}

/** It cannot be opened as it is; the sentence says what to do about it. */
export class StoreUnusable extends Error {
  override name = 'StoreUnusable'
}

const isLocked = [5, 6]
const isFull = 13
const isDamaged = [11, 26]

/** In words for whoever starts a daemon. Undefined: it is no error of SQLite's. */
export function unusable(path: string, error: unknown): StoreUnusable | undefined {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return undefined
  const code = error.errcode % 256
  const sentence = isLocked.includes(code)
    ? `The database ${path} is locked by another program. Find it, with fuser ${path} for instance, end it and try again.`
    : code === isFull
      ? `There is no room for the database ${path}. Make room on its disk and try again.`
      : isDamaged.includes(code)
        ? `The database ${path} is damaged (${error.message}). Restore a backup with hatchway restore.`
        : `The database ${path} cannot be used: ${error.message}. hatchway doctor says more.`
  return new StoreUnusable(sentence, { cause: error })
}
