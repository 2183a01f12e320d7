import { lstatSync } from 'node:fs'
import type { Claims } from './claims.ts'
import type { InboxState } from './drop.ts'
import type { Timers } from './timers.ts'
import type { ClaimedFile } from './types.ts'

/** Files that the consumer took for half-written: read again when they have changed, or when their time is up. */
export interface Waits {
  begin(file: ClaimedFile, inbox: InboxState | undefined): void
  end(file: ClaimedFile): void
  readAgain(file: ClaimedFile): ClaimedFile
  /** of a file that was claimed just now */
  mayGrow(file: ClaimedFile, inbox: InboxState, time: number): boolean
}

const maxGraceFactor = 5
const maxPerInbox = 1000
const maxPauseMs = 250
const minPauseMs = 5

export function createWaits(options: {
  graceMs: number
  now(): number
  clock(): number
  timers: Timers
  claims: Claims
  /** it is time to read it again */
  due(file: ClaimedFile): void
}): Waits {
  const { graceMs, now, clock, timers, claims } = options
  const waits = new Map<ClaimedFile['seq'], { timer: NodeJS.Timeout; inbox: InboxState | undefined }>()
  const firstWaited = new WeakMap<ClaimedFile, number>()

  const pauseBeforeReading = (since: number) => Math.min(maxPauseMs, Math.max(minPauseMs, clock() - since))

  const isFresh = (file: ClaimedFile, time: number) =>
    file.problem === 'unreadable' || time - file.mtimeUs / 1000 < graceMs

  const mayGrowStill = (file: ClaimedFile, since: number | undefined): boolean =>
    isFresh(file, now()) && (since === undefined || clock() - since < graceMs * maxGraceFactor)

  const end = (file: ClaimedFile) => {
    const waiting = waits.get(file.seq)
    if (!waiting) return
    waits.delete(file.seq)
    timers.cancel(waiting.timer)
    if (waiting.inbox) waiting.inbox.waiting--
  }

  return {
    begin(file, inbox) {
      end(file)
      const since = firstWaited.get(file) ?? clock()
      // Without what was read: there may be a thousand of them.
      const unread = { ...file, text: '' }
      firstWaited.set(file, since)
      firstWaited.set(unread, since)
      const lookAgain = () => {
        // Reading and parsing it in vain is what a writer of large unfinished files would like the host to do.
        if (mayGrowStill(file, since) && isUnchanged(file)) {
          waits.set(file.seq, { timer: timers.later(pauseBeforeReading(since), lookAgain), inbox })
          return
        }
        end(file)
        unread.recovered = file.recovered
        options.due(unread)
      }
      waits.set(file.seq, { timer: timers.later(pauseBeforeReading(since), lookAgain), inbox })
      if (inbox) inbox.waiting++
    },
    end,
    readAgain(file) {
      const again = claims.reread(file)
      const since = firstWaited.get(file)
      again.mayGrow = mayGrowStill(again, since)
      if (since !== undefined) firstWaited.set(again, since)
      return again
    },
    mayGrow: (file, inbox, time) =>
      file.problem === 'unreadable' || (inbox.waiting < maxPerInbox && isFresh(file, time)),
  }
}

const isUnchanged = ({ path, size, mtimeUs, problem }: ClaimedFile): boolean => {
  if (problem === 'unreadable') return false
  try {
    const about = lstatSync(path)
    return about.size === size && Math.round(about.mtimeMs * 1000) === mtimeUs
  } catch {
    // Reading it finds out why.
    return false
  }
}
