import { lstatSync, opendirSync, unlinkSync } from 'node:fs'
import { parseStrict, type RunEvent } from '@hatchway/protocol'
import {
  createFileReader,
  type DirectoryHandle,
  errorCode,
  type FileContent,
  openDirectory,
} from '@hatchway/spool'
import { notice } from './foreign.ts'
import type { Outlet } from './types.ts'

/**
 * Reads the events that a container puts down as files. A file is removed before its events are handled: one that cannot
 * be removed would otherwise be handled again and again. Only regular files are read, in a directory held by its handle,
 * and only a part of a flood at a time.
 */
export interface OutletReader {
  /** new files, oldest first; `last`: nobody is writing any more */
  read(last: boolean): Iterable<Said>
}

interface Said {
  /** when it was written, in microseconds */
  at: number
  /** of the file, in bytes */
  size: number
  events: readonly RunEvent[]
}

const fileLimit = 1_048_576
const depth = 64
const namesAtOnce = 2000
/** A writer that does not rename gets this long to finish its file. */
const graceMs = 1000

/** One for all sessions: each holds as much memory as the largest file. */
let shared: ((path: string) => FileContent) | undefined

export function createOutletReader(path: string, { directory: name, meaning }: Outlet): OutletReader {
  let isBlocked = false

  /** undefined: it stays for now */
  const take = (file: string, last: boolean): Said | undefined => {
    const content = contentOf(file)
    if (!content) return undefined
    const { problem, size, mtimeUs: at } = content
    const isYoung = !last && Date.now() - at / 1000 < graceMs
    const parsed = problem === undefined ? parseStrict(content.text, { depth, mayGrow: isYoung }) : undefined
    if (parsed && 'refusal' in parsed && parsed.incomplete && isYoung) return undefined
    const failure = remove(file)
    if (failure === 'ENOENT') return undefined
    if (failure !== undefined) {
      if (isBlocked) return undefined
      isBlocked = true
      return {
        at,
        size,
        events: [notice(`Something in ${name}/ cannot be removed (${failure}), and is not read.`)],
      }
    }
    isBlocked = false
    if (parsed && 'body' in parsed) return { at, size, events: meaning(parsed.body) }
    const reason = problem ?? parsed?.refusal.code
    return { at, size, events: [notice(`A file in ${name}/ could not be read: ${reason}.`)] }
  }

  return {
    *read(last) {
      const directory = openDirectory(path)
      if (typeof directory === 'string') return
      try {
        for (const file of namesIn(directory)) {
          const said = take(`${directory.path}/${file}`, last)
          if (said) yield said
        }
      } finally {
        directory.close()
      }
    },
  }
}

/** By their numbers: a clock that began at the machine's start has ever more digits. */
let byNumber: Intl.Collator | undefined

function namesIn({ path }: DirectoryHandle): string[] {
  const names: string[] = []
  const entries = opendirSync(path, { bufferSize: 256 })
  try {
    for (let i = 0; i < namesAtOnce; i++) {
      const entry = entries.readSync()
      if (entry === null) break
      if (entry.name.endsWith('.json') && !entry.name.startsWith('.')) names.push(entry.name)
    }
  } finally {
    entries.closeSync()
  }
  byNumber ??= new Intl.Collator('en', { numeric: true })
  return names.sort(byNumber.compare)
}

function contentOf(file: string): FileContent | undefined {
  shared ??= createFileReader(fileLimit)
  try {
    return shared(file)
  } catch (error) {
    const found = lstatSync(file, { throwIfNoEntry: false })
    if (!found) return undefined
    // It was replaced by something else meanwhile.
    if (errorCode(error) === 'UNKNOWN') throw error
    return { text: '', problem: 'unreadable', inode: found.ino, mtimeUs: found.mtimeMs * 1000, size: 0 }
  }
}

/** The error's code; undefined: it is gone, by our hand. */
function remove(file: string): string | undefined {
  try {
    unlinkSync(file)
    return undefined
  } catch (error) {
    return errorCode(error)
  }
}
