/** The disk or the database failed, not the work that was asked of it: the same work may succeed later. */
export class StoreFailure extends Error {
  override name = 'StoreFailure'
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
