import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  opendirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type DialectName, dialects, type OutgoingFile } from '@hatchway/protocol'
import { errorCode, type Owner, type PinnedDirectory, pinDirectory, post } from '@hatchway/spool'
import type { IncomingRow } from '../store/agent-types.ts'
import { textWithFiles } from '../store/attachment-text.ts'

/**
 * The way into a running session: follow-ups as files in the group's own directory, in its dialect. Every run begins and
 * ends with an empty one, so that nothing of an earlier run reaches a later one (lesson 21); what was in it unused is in
 * the store, and waits there.
 */
export interface InputBox {
  /** the group's own, in which all of its boxes are */
  directory: string
  /** `notices`: what the host itself says first */
  post(row: IncomingRow, notices?: readonly string[]): void
  place(file: OutgoingFile): void
  close(): void
  /** asks for the end of the turn, and tells how that wish is taken back; undefined: it is one that cannot be asked */
  interrupt(): (() => void) | undefined
  /** the same, and takes back what was given and nobody has taken yet */
  stop(): (() => void) | undefined
  /** only while nothing of the group runs */
  clear(): Promise<void>
  /** follow-ups that somebody took out; where a time is given (µs), before that */
  taken(before?: number): readonly string[]
}

/** As the agent knows it, and as its file is called. */
export const inputId = (id: number): string => String(id).padStart(12, '0')

const boxes = ['input', 'inbox', 'control', 'output', 'outbox']

export function createInputBox(options: {
  directory: string
  dialect: DialectName
  staging: string
  owner: Owner | undefined
  timezone: string
  now(): Date
}): InputBox {
  const { directory, dialect, staging, owner, timezone, now } = options
  const posted = new Map<string, string>()
  const gone = new Map<string, number>()

  const place = (file: OutgoingFile) => {
    const [box = '', name = ''] = file.path.split('/')
    post(join(directory, box), file.content, { name, staging, mode: 0o600, owner })
  }

  /** A directory changes when a name goes out of it: asked afterwards, its time is never earlier than that. */
  const look = () => {
    for (const [id, path] of posted) {
      if (isThere(join(directory, path))) continue
      posted.delete(id)
      const box = lstatSync(join(directory, dirname(path)), { throwIfNoEntry: false })
      gone.set(id, Math.round((box?.mtimeMs ?? 0) * 1000))
    }
  }

  const removeFile = (path: string) => {
    const box = open(join(directory, dirname(path)))
    if (!box) return
    try {
      remove(Buffer.from(`${box.path}/${basename(path)}`))
    } finally {
      box.close()
    }
  }
  const wish = (file: OutgoingFile | undefined): (() => void) | undefined => {
    if (!file) return undefined
    place(file)
    return () => removeFile(file.path)
  }

  return {
    directory,
    post(row, notices = []) {
      // What we put in changes the directory's time, too.
      look()
      const file = dialects[dialect].input(
        {
          text: textWithFiles(row),
          sender: row.sender,
          sender_name: row.senderName,
          timestamp: new Date(row.createdAt).toISOString(),
        },
        inputId(row.id),
        { timezone, notices },
      )
      place(file)
      posted.set(inputId(row.id), file.path)
    },
    place,
    close: () => place(dialects[dialect].close(now().toISOString())),
    interrupt: () => wish(dialects[dialect].interrupt?.(now().toISOString())),
    stop() {
      for (const path of posted.values()) removeFile(path)
      posted.clear()
      const { interrupt, stop = interrupt } = dialects[dialect]
      return wish(stop?.(now().toISOString()))
    },
    async clear() {
      posted.clear()
      gone.clear()
      for (const box of boxes) await empty(join(directory, box))
    },
    taken(before = Number.POSITIVE_INFINITY) {
      look()
      return [...gone].filter(([, at]) => at < before).map(([id]) => id)
    },
  }
}

/** In a directory that its owner has locked, what we put there is still there. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error) return true
    throw error
  }
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
  const top = open(path)
  if (!top) return
  const mark = `.gone-${randomUUID()}-`
  let count = 0
  const removeAll = async (directory: PinnedDirectory): Promise<boolean> => {
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
          if (directory !== top) unlock(at)
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
    const directory = open(at)
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
function open(path: string): PinnedDirectory | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() && (found.mode & 0o700) !== 0o700) unlock(path)
  const directory = pinDirectory(path)
  if (directory === 'missing') return undefined
  if (typeof directory !== 'string') return directory
  throw new Error(`${basename(path)}/ cannot be emptied: it is ${directory.replaceAll('_', ' ')}.`)
}

/** a handle that needs no right to read (O_PATH), which Node has no name for */
const pathOnly = 0o10000000
const byHandle = process.platform === 'linux'

/** What has become a link since it was looked at is left alone: its mode would be that of what it leads to. */
function unlock(path: string | Buffer): void {
  if (!byHandle) return void chmodSync(path, 0o700)
  let fd: number
  try {
    fd = openSync(path, pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) return
    throw error
  }
  try {
    chmodSync(`/proc/self/fd/${fd}`, 0o700)
  } finally {
    closeSync(fd)
  }
}

function remove(path: Buffer): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
