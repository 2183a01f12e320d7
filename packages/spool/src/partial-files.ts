import { lstatSync } from 'node:fs'
import type { Claims } from './claims.ts'
import type { InboxState } from './inbox-state.ts'
import type { Timers } from './timers.ts'
import type { ClaimedFile } from './types.ts'

/**
 * Files that the consumer postponed because they look half-written. Each is read again when it has changed, or when
 * its grace time is over.
 */
export interface PartialFiles {
  add(file: ClaimedFile, inbox: InboxState | undefined): void
  remove(file: ClaimedFile): void
  reread(file: ClaimedFile): ClaimedFile
  /** for a file that was just claimed: whether its writer may still be writing */
  mayGrow(file: ClaimedFile, inbox: InboxState, time: number): boolean
}

const maxGraceFactor = 5
const maxPerInbox = 1000
const maxPauseMs = 250
const minPauseMs = 5

export function createPartialFiles(options: {
  graceMs: number
  now(): number
  clock(): number
  timers: Timers
  claims: Claims
  /** called when the file should be read again */
  due(file: ClaimedFile): void
}): PartialFiles {
  const { graceMs, now, clock, timers, claims } = options
  const partialFiles = new Map<ClaimedFile['seq'], { timer: NodeJS.Timeout; inbox: InboxState | undefined }>()
  const firstPostponed = new WeakMap<ClaimedFile, number>()

  const pauseMs = (since: number) => Math.min(maxPauseMs, Math.max(minPauseMs, clock() - since))

  const isFresh = (file: ClaimedFile, time: number) =>
    file.problem === 'unreadable' || time - file.mtimeUs / 1000 < graceMs

  const stillMayGrow = (file: ClaimedFile, since: number | undefined): boolean =>
    isFresh(file, now()) && (since === undefined || clock() - since < graceMs * maxGraceFactor)

  const remove = (file: ClaimedFile) => {
    const entry = partialFiles.get(file.seq)
    if (!entry) return
    partialFiles.delete(file.seq)
    timers.cancel(entry.timer)
    if (entry.inbox) entry.inbox.partialCount--
  }

  return {
    add(file, inbox) {
      remove(file)
      const since = firstPostponed.get(file) ?? clock()
      // Without the text, because there may be a thousand of these.
      const unread = { ...file, text: '' }
      firstPostponed.set(file, since)
      firstPostponed.set(unread, since)
      const check = () => {
        // Reading it again before it changed would only cost time, which a hostile writer of large files could
        // exploit.
        if (stillMayGrow(file, since) && isUnchanged(file)) {
          partialFiles.set(file.seq, { timer: timers.later(pauseMs(since), check), inbox })
          return
        }
        remove(file)
        unread.recovered = file.recovered
        options.due(unread)
      }
      partialFiles.set(file.seq, { timer: timers.later(pauseMs(since), check), inbox })
      if (inbox) inbox.partialCount++
    },
    remove,
    reread(file) {
      const again = claims.reread(file)
      const since = firstPostponed.get(file)
      again.mayGrow = stillMayGrow(again, since)
      if (since !== undefined) firstPostponed.set(again, since)
      return again
    },
    mayGrow: (file, inbox, time) =>
      file.problem === 'unreadable' || (inbox.partialCount < maxPerInbox && isFresh(file, time)),
  }
}

const isUnchanged = ({ path, size, mtimeUs, problem }: ClaimedFile): boolean => {
  if (problem === 'unreadable') return false
  try {
    const about = lstatSync(path)
    return about.size === size && Math.round(about.mtimeMs * 1000) === mtimeUs
  } catch {
    // The next read reports why.
    return false
  }
}
