import { closeSync, existsSync, fstatSync, openSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { DatabaseSync } from 'node:sqlite'
import { read } from './read-at.ts'

/**
 * A copy of the database while it is at work, as a crash would leave it: the file, which does not change as long as
 * its log is not written back, and the log, of which SQLite takes what is whole. Nobody waits for it: SQLite's own
 * backup holds the connection while it syncs the copy, and Node's gives up where it meets a transaction.
 *
 * The handles stay open until the database is closed: closing one would drop the locks that SQLite has on the file.
 */
export interface Copying {
  /** `path` and `path-wal` must not exist; open what is there, and it is as it was at one moment meanwhile */
  copyTo(path: string): Promise<void>
  close(): void
}

const chunkBytes = 1_048_576
/** After so many bytes the disk has to have them: a commit meanwhile would wait for all that was written before it. */
const syncedBytes = 4_194_304
const logHeaderBytes = 32

export function createCopying(database: DatabaseSync, path: string, checkpointPages: number): Copying {
  const handles = new Map<string, number>()
  let underWay = 0
  let isClosed = false
  /** undefined: there is no such file */
  const handleOf = (name: string): number | undefined => {
    const known = handles.get(name)
    if (known !== undefined || !existsSync(name)) return known
    const fd = openSync(name, 'r')
    handles.set(name, fd)
    return fd
  }
  /** The log is not written back into the file meanwhile. */
  const held = async (work: () => Promise<void>) => {
    if (underWay++ === 0) database.exec('PRAGMA wal_autocheckpoint = 0')
    try {
      await work()
      if (isClosed) throw new Error('The database was closed while it was copied.')
    } finally {
      if (--underWay === 0 && !isClosed) database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
    }
  }

  return {
    copyTo: to =>
      held(async () => {
        const file = handleOf(path)
        if (file !== undefined) await copyBytes(file, to)
        // A log that was begun anew in the middle would be half of each: its first bytes tell.
        const log = handleOf(`${path}-wal`)
        while (log !== undefined) {
          const before = await read(log, 0, logHeaderBytes)
          await copyBytes(log, `${to}-wal`)
          if (before.equals(await read(log, 0, logHeaderBytes))) return
        }
      }),
    close() {
      isClosed = true
      for (const fd of handles.values()) closeSync(fd)
      handles.clear()
    },
  }
}

async function copyBytes(from: number, to: string): Promise<void> {
  const target: FileHandle = await open(to, 'w', 0o600)
  try {
    const { size } = fstatSync(from)
    for (let at = 0; at < size; ) {
      const part = await read(from, at, Math.min(chunkBytes, size - at))
      if (part.length === 0) return
      await target.write(part, 0, part.length, at)
      at += part.length
      if (at % syncedBytes === 0) await target.datasync()
    }
  } finally {
    await target.close()
  }
}
