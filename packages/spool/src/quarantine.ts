import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { errorCode } from './directory.ts'
import { post } from './post.ts'

/**
 * Keeps refused files together with the reason:
 *
 *   {inbox}-e.{id}-{name}.error        the refused file, if it was a regular file or a directory
 *   {inbox}-e.{id}-{name}.error.json   who, what, why, when
 *   {inbox}-summary.error.json         how many files were refused without being kept, because the inbox used its space
 *
 * The id is the file's `seq`, so quarantining a file twice, before and after a crash, leaves one copy.
 */
export interface QuarantineEntry {
  id: string
  original_file: string | null
  error: string
  processed_at: string
  source_group: string
  directory: string | null
  code: string
  type: string | null
  /** whether the file itself is kept, so that people can inspect it and process it again */
  kept: boolean
  size: number
  /** how many files this entry stands for */
  count: number
}

export interface Refused {
  seq: number
  inbox: string
  subdirectory: string
  name: string
  path: string
  size: number
}

export interface Quarantine {
  put(file: Refused, reason: { code: string; error: string; type: string | null; at: Date }): void
  /** counts files that were refused without being read */
  count(inbox: string, code: string, error: string, files: number, at: Date): void
  /** oldest first; optionally only the newest ones, or those of one inbox */
  list(wanted?: { newest?: number; inbox?: string }): QuarantineEntry[]
  find(id: string): QuarantineEntry | undefined
  pathOf(entry: QuarantineEntry): string
  forget(entry: QuarantineEntry): void
  /** writes summaries that are not on disk yet */
  flush(): void
}

export interface QuarantineOptions {
  directory: string
  /** where unfinished files are written, on the same file system */
  staging: string
  /** bytes per inbox; each entry also counts as one disk block */
  limitBytes: number
}

const block = 4096

export function createQuarantine({ directory, staging, limitBytes }: QuarantineOptions): Quarantine {
  mkdirSync(directory, { recursive: true })
  const used = new Map<string, number>()
  const summaries = new Map<string, QuarantineEntry>()
  const unwritten = new Set<string>()

  const writeEntry = (entry: QuarantineEntry, name: string) =>
    post(directory, `${JSON.stringify(entry, null, 2)}\n`, { name, staging, mode: 0o640 })

  const use = (inbox: string, bytes: number) => used.set(inbox, (used.get(inbox) ?? 0) + bytes)

  for (const name of readdirSync(directory)) {
    const inbox = /^([A-Za-z0-9_-]+)-(?:e\.\d+-.*|summary)\.error(\.json)?$/.exec(name)?.[1]
    if (inbox === undefined) continue
    if (name === summaryName(inbox)) {
      const entry = readEntry(join(directory, name))
      if (entry) summaries.set(inbox, entry)
    } else {
      const about = lstatSync(join(directory, name), { throwIfNoEntry: false })
      use(inbox, name.endsWith('.json') ? block : about?.isFile() ? about.size : 0)
    }
  }

  const flush = () => {
    for (const inbox of unwritten) {
      const entry = summaries.get(inbox)
      if (entry) writeEntry(entry, summaryName(inbox))
    }
    unwritten.clear()
  }

  const addToSummary = (inbox: string, code: string, error: string, files: number, at: Date) => {
    const before = summaries.get(inbox)
    summaries.set(inbox, {
      id: `${inbox}-summary`,
      original_file: null,
      error,
      processed_at: at.toISOString(),
      source_group: inbox,
      directory: null,
      code,
      type: null,
      kept: false,
      size: 0,
      count: (before?.count ?? 0) + files,
    })
    unwritten.add(inbox)
  }

  return {
    put(file, { code, error, type, at }) {
      const name = entryName(file.inbox, String(file.seq), file.name)
      const target = join(directory, `${name}.error`)
      const stat = lstatSync(file.path, { throwIfNoEntry: false })
      const there = stat ?? lstatSync(target, { throwIfNoEntry: false })
      const kept = there !== undefined && isKept(there)
      const size = there?.isFile() && kept ? there.size : 0
      const again = lstatSync(join(directory, `${name}.error.json`), { throwIfNoEntry: false }) !== undefined
      if (!again && (used.get(file.inbox) ?? 0) + block + size > limitBytes) {
        // The file exists neither here nor in quarantine, so it was already counted.
        if (!stat) return
        if (tryRemove(file.path, stat)) {
          const full = 'The space for refused files is full; this many more were refused and not kept.'
          return addToSummary(file.inbox, code, `${full} The last reason: ${error}`, 1, at)
        }
      }
      writeEntry(
        {
          id: String(file.seq),
          original_file: file.name,
          error,
          processed_at: at.toISOString(),
          source_group: file.inbox,
          directory: file.subdirectory,
          code,
          type,
          kept,
          size,
          count: 1,
        },
        `${name}.error.json`,
      )
      if (!again) use(file.inbox, block)
      if (!stat) return
      if (kept) {
        renameSync(file.path, target)
        use(file.inbox, size)
        if (stat.isFile()) makeReadOnly(target)
      } else unlinkSync(file.path)
    },
    count(inbox, code, error, files, at) {
      addToSummary(inbox, code, error, files, at)
      flush()
    },
    list({ newest = Number.POSITIVE_INFINITY, inbox } = {}) {
      flush()
      const entries: QuarantineEntry[] = []
      for (const name of newestOf(readdirSync(directory), newest, inbox)) {
        const entry = readEntry(join(directory, name))
        if (entry) entries.push(entry)
      }
      return entries.sort(
        (a, b) => a.processed_at.localeCompare(b.processed_at) || Number(a.id) - Number(b.id),
      )
    },
    find(id) {
      flush()
      const mark = `-e.${id}-`
      for (const name of readdirSync(directory)) {
        if (!name.endsWith('.error.json') || !(name.includes(mark) || name === `${id}.error.json`)) continue
        const entry = readEntry(join(directory, name))
        if (entry?.id === id) return entry
      }
      return undefined
    },
    pathOf: entry =>
      join(directory, `${entryName(entry.source_group, entry.id, entry.original_file ?? '')}.error`),
    forget(entry) {
      const path =
        entry.original_file === null
          ? join(directory, summaryName(entry.source_group))
          : join(directory, `${entryName(entry.source_group, entry.id, entry.original_file)}.error.json`)
      try {
        unlinkSync(path)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') throw error
      }
      if (entry.original_file === null) summaries.delete(entry.source_group)
      else use(entry.source_group, -(block + entry.size))
    },
    flush,
  }
}

const seqIn = (name: string) => Number(/-e\.(\d+)-/.exec(name)?.[1] ?? Number.POSITIVE_INFINITY)

/** The `seq` is part of the name, so entries that are not wanted need not be read. */
function newestOf(names: readonly string[], count: number, inbox: string | undefined): readonly string[] {
  const wanted = names.filter(
    name =>
      name.endsWith('.error.json') &&
      (inbox === undefined || name.startsWith(`${inbox}-e.`) || name === summaryName(inbox)),
  )
  return wanted.length <= count
    ? wanted
    : wanted.toSorted((a, b) => (seqIn(a) === seqIn(b) ? 0 : seqIn(b) - seqIn(a))).slice(0, count)
}

const entryName = (inbox: string, id: string, name: string) => `${inbox}-e.${id}-${name}`
const summaryName = (inbox: string) => `${inbox}-summary.error.json`

function readEntry(path: string): QuarantineEntry | undefined {
  try {
    const entry: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isEntry(entry) ? entry : undefined
  } catch {
    // Empty after a power failure, or removed since it was listed. The other entries must still be shown.
    return undefined
  }
}

/** A file with a second name is not kept: changing its mode or moving it would affect the other name too. */
const isKept = (about: Stats) => (about.isFile() && about.nlink === 1) || about.isDirectory()

/**
 * A directory that is not empty is not removed: its writer may still use it, and could swap what a recursive delete
 * sees.
 */
function tryRemove(path: string, about: Stats): boolean {
  if (!about.isDirectory()) {
    unlinkSync(path)
    return true
  }
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY') throw error
    return false
  }
}

/** People may read the file, but nobody should execute or change it. */
function makeReadOnly(path: string): void {
  try {
    chmodSync(path, 0o640)
  } catch (error) {
    // Only the owner may change the mode, and a host that is not root does not own files of a sandbox.
    if (errorCode(error) !== 'EPERM') throw error
  }
}

function isEntry(value: unknown): value is QuarantineEntry {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'string' &&
    'source_group' in value &&
    typeof value.source_group === 'string' &&
    'processed_at' in value &&
    typeof value.processed_at === 'string' &&
    'code' in value &&
    'count' in value
  )
}
