import { createBells } from './bells.ts'
import { createClaims } from './claims.ts'
import { createInboxState, type InboxState, wantLook } from './drop.ts'
import { createLooking } from './looking.ts'
import { isValidDrop, isValidInbox } from './names.ts'
import { createPins } from './pins.ts'
import { createPolls } from './polls.ts'
import { removeOldProbes } from './probe.ts'
import { createRemover } from './remove.ts'
import { createShedding } from './shedding.ts'
import { createSweeps } from './sweeps.ts'
import { createTell } from './tell.ts'
import { createTimers } from './timers.ts'
import { createTrouble } from './trouble.ts'
import { createTurns } from './turns.ts'
import type { ClaimedFile, Inbox, Report, WatchMode } from './types.ts'
import { createWaits } from './waits.ts'

/**
 * The consumer's side of the spool: many inboxes, one consumer. This file puts the parts together:
 *
 *   watching   bells.ts (events), polls.ts (where there are none), sweeps.ts (whatever the bells do) say when to look
 *   looking    looking.ts finds what there is, in order; trouble.ts keeps those apart that cannot be looked into
 *   turns      turns.ts takes a share from each inbox in turn, claims it and hands it over; waits.ts are the half-written
 *
 * A directory has a bell, unless events do not reach it (then it is polled), or it is crowded: while files come faster
 * than they are taken, rings tell nothing new and cost a lot, so the bell comes down until it is calm. Whatever the
 * bells do, every directory is swept at long intervals.
 */
export interface SpoolOptions {
  /** where claimed files lie: outside every mount, on the file system of the inboxes */
  claimed: string
  /** larger than every number that was ever given to a claim */
  firstSeq: number
  /** bytes; a larger file is claimed but not read */
  fileLimit: number
  /** files waiting per inbox; the newest beyond it are thrown away and counted */
  waitingLimit: number
  events: 'auto' | 'off'
  pollMinMs?: number
  pollMaxMs?: number
  sweepMs?: number
  graceMs?: number
  /**
   * While files come less than this apart, the process does not sleep between them: waking up, with everything fallen
   * out of the processor's caches, takes longer than handling a file. 0: it always sleeps.
   */
  spinMs?: number
  /**
   * Takes a batch: files of one inbox in order, inboxes in turn. Each file has to be given back, now or later, with
   * `discard` (it is done with) or `wait` (it seems half-written). Throwing means that none of it was taken.
   */
  consume(files: readonly ClaimedFile[]): void | Promise<void>
  /** how many files of the inbox may be taken now, and when to ask again if none */
  allowance?(inbox: string): { files: number; retryMs: number }
  report(report: Report): void
  /** called at each step with its name; tests end the process there */
  fault?(step: 'listed' | 'claimed' | 'gathered' | 'discarding'): void
  now?(): number
}

export interface Spool {
  /** resolves when everything that was waiting has been consumed, or `stop` was called */
  start(): Promise<void>
  add(inbox: Inbox): void
  remove(inbox: string): void
  wait(file: ClaimedFile): void
  discard(files: readonly ClaimedFile[]): void
  /** has a file of ours handled as if the inbox had posted it; an error code if it cannot be moved, or not yet */
  adopt(path: string, inbox: string, drop: string, name: string): string | undefined
  /** look now, whatever the bells say */
  look(inbox: string): void
  mode(inbox: string): WatchMode | undefined
  /** calls back when whatever lies in the inbox now has been consumed, also what seems half-written; not after `stop` */
  whenThrough(inbox: string, then: () => void): void
  /** whether files are known to be waiting */
  busy(): boolean
  /** resolves when the batch that is being consumed has been */
  stop(): Promise<void>
}

export function createSpool(options: SpoolOptions): Spool {
  const { report, waitingLimit, pollMinMs = 5, pollMaxMs = 1000, sweepMs = 60_000 } = options
  const { graceMs = 2000, spinMs = 10, now = Date.now } = options
  // Pauses are counted by a clock that nobody sets back.
  const clock = () => performance.now()
  const fault = options.fault ?? (() => {})
  const inboxes = new Map<string, InboxState>()
  let started = false
  let stopped = false
  const isStopped = () => stopped

  const claims = createClaims({
    directory: options.claimed,
    fileLimit: options.fileLimit,
    firstSeq: options.firstSeq,
  })
  const remover = createRemover(message => report({ kind: 'not_removed', message }))
  const timers = createTimers(isStopped)
  const tell = createTell(report)
  const pins = createPins()
  const makeReady = (inbox: InboxState) => turns.makeReady(inbox)
  const trouble = createTrouble({ tell, clock })
  const polls = createPolls({
    minMs: pollMinMs,
    maxMs: pollMaxMs,
    clock,
    timers,
    tell,
    report,
    isStarted: () => started,
    isWaiting: trouble.isWaiting,
    makeReady,
  })
  const bells = createBells({
    events: options.events,
    claimed: options.claimed,
    clock,
    isStopped,
    tell,
    pins,
    polls,
    trouble,
    makeReady,
    deluge: () => looking.distrustRings(),
  })
  const sweeps = createSweeps({
    sweepMs,
    now,
    inboxes: () => inboxes.values(),
    bells,
    pins,
    trouble,
    makeReady,
  })
  const looking = createLooking({
    waitingLimit,
    now,
    timers,
    tell,
    pins,
    polls,
    bells,
    trouble,
    makeReady,
    listed: () => fault('listed'),
  })
  const waits = createWaits({
    graceMs,
    now,
    clock,
    timers,
    claims,
    due: file => turns.takeFirst([file]),
  })
  const turns = createTurns({
    spinMs,
    now,
    isStopped,
    timers,
    claims,
    pins,
    trouble,
    looking,
    shedding: createShedding({ waitingLimit, pins, trouble, report }),
    waits,
    consume: options.consume,
    allowance: options.allowance,
    report,
    fault,
  })

  return {
    async start() {
      turns.takeFirst(claims.recover())
      removeOldProbes(options.claimed)
      await bells.probe()
      if (stopped) return
      started = true
      sweeps.start()
      await turns.start()
    },
    add(inbox) {
      if (inboxes.has(inbox.id)) return
      if (!isValidInbox(inbox.id) || !inbox.drops.every(isValidDrop)) {
        throw new RangeError(
          `${JSON.stringify(inbox.id)} or one of its directories has a name that no claim can carry`,
        )
      }
      const state = createInboxState(inbox)
      inboxes.set(inbox.id, state)
      turns.enter(state)
    },
    remove(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      turns.leave(inbox)
      for (const drop of inbox.drops) bells.leave(drop)
      polls.forget(inbox)
      inboxes.delete(id)
    },
    wait: file => waits.begin(file, inboxes.get(file.inbox)),
    discard(files) {
      for (const file of files) waits.end(file)
      fault('discarding')
      remover.remove(files.map(file => file.path))
    },
    adopt(path, inbox, drop, name) {
      // Before the claims of an earlier process are known, its number could be one of theirs.
      if (!started) return 'EAGAIN'
      const file = claims.adopt(path, inbox, drop, name)
      if (typeof file === 'string') return file
      turns.takeFirst([file])
      return undefined
    },
    look(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      for (const drop of inbox.drops) wantLook(drop)
      makeReady(inbox)
    },
    mode(id) {
      const inbox = inboxes.get(id)
      return inbox && (inbox.polling ? 'polling' : 'events')
    },
    whenThrough(id, then) {
      const inbox = inboxes.get(id)
      if (inbox) turns.whenThrough(inbox, then)
      else then()
    },
    busy: turns.isBusy,
    async stop() {
      stopped = true
      sweeps.stop()
      for (const inbox of inboxes.values()) for (const drop of inbox.drops) bells.leave(drop)
      await turns.stop()
      timers.cancelAll()
      await remover.close()
    },
  }
}
