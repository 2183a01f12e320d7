import type { Outcome } from '@hatchway/protocol'
import type { ClaimedFile, Quarantine, Spool } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Notices } from '../base/notices.ts'
import type { Effect } from '../commands/effects.ts'
import type { CommandRow, RequestStore } from '../store/types.ts'
import type { Replies } from './replies.ts'
import type { Snapshots } from './snapshots.ts'

/**
 * What follows a durable decision. All of it can be done again: a crash anywhere in here leaves the claimed file in
 * the spool, and the next start comes back with the same row.
 */
export interface Effects {
  settle(file: ClaimedFile, row: CommandRow, effects: readonly Effect[], repeated: boolean): void
  finishBatch(): void
  /** before `begin` it is only kept */
  apply(effects: readonly Effect[]): void
  /** everybody who has to act on effects is there */
  begin(): void
  /** A command that was held is over; undefined: it goes on as another request. Its file goes as any other does. */
  decided(seq: number, outcome: Outcome | undefined): void
}

export interface EffectsOptions {
  /** whoever else has to act on an effect hears of it here */
  notices: Pick<Notices<Effect>, 'publish'>
  /** undefined: no daemon runs, and no file is taken */
  spool: Pick<Spool, 'discard' | 'busy'> | undefined
  replies: Replies
  snapshots: Snapshots
  quarantine: Quarantine
  requests: Pick<RequestStore, 'isHeld'>
  log: Logger
  fault: Fault
}

const nothing: readonly Effect[] = []
/** Whoever asked for it waits for the answer first. */
const followsAnswer = ({ kind }: Effect): boolean => kind === 'session_over'
const holds = (effect: Effect): boolean => effect.kind === 'request_stored' && effect.request.kind === 'held'

export function createEffects(options: EffectsOptions): Effects {
  const { notices, spool, replies, snapshots, quarantine, log, fault } = options
  let done: ClaimedFile[] = []
  /** files of held commands: they stay in the spool, for what is refused in the end has to be in errors/ */
  const held = new Map<number, { file: ClaimedFile; row: CommandRow }>()

  /** what happened before everybody was there who has to know of it */
  let early: Effect[] | undefined = []

  /** whether snapshots show it */
  const apply = (effects: readonly Effect[]): boolean => {
    let visible = false
    for (const effect of effects) {
      // First: a new group has no directory yet that its snapshots could be written to.
      notices.publish(effect)
      visible = snapshots.changed(effect) || visible
    }
    return visible
  }

  const finishFile = (file: ClaimedFile, row: CommandRow, repeated: boolean, batched: boolean) => {
    fault('answered')
    // What its agent took back was not refused.
    if (row.outcome?.ok === false && !repeated && row.outcome.error.code !== 'cancelled') {
      const { code, message } = row.outcome.error
      fault('quarantining')
      try {
        quarantine.put(file, { code, error: message, type: row.type, at: new Date(row.receivedAt) })
      } catch (error) {
        log.warn(
          { error, group: file.inbox, file: file.name },
          'a refused file could not be put into errors/; it stays in the spool',
        )
        return
      }
      fault('quarantined')
      return
    }
    if (batched) done.push(file)
    else spool?.discard([file])
  }

  return {
    settle(file, row, all, repeated) {
      const afterwards = all.some(followsAnswer) ? all.filter(followsAnswer) : nothing
      const atOnce = afterwards === nothing ? all : all.filter(effect => !followsAnswer(effect))
      const visible = atOnce.length > 0 && apply(atOnce)
      const answered = (batched: boolean) => {
        apply(afterwards)
        finishFile(file, row, repeated, batched)
      }
      const { reply, outcome } = row
      // It is decided. An answer that cannot be placed for a while must not keep the content in memory.
      file.text = ''
      if (!outcome && !repeated && (all.some(holds) || options.requests.isHeld(row.seq))) {
        held.set(row.seq, { file, row })
        return
      }
      // Without an outcome the answer follows, and is no longer this file's matter.
      if (!reply || !outcome) return answered(true)
      if (visible || repeated) {
        // An agent that has its answer finds it in the snapshot, too. A request that is made again is not answered
        // before the first one, which may be waiting for that.
        snapshots.whenWritten(() => replies.send(row.group, reply, outcome, () => answered(false)))
        return
      }
      fault('answering')
      let inBatch = true
      replies.send(row.group, reply, outcome, () => answered(inBatch))
      inBatch = false
    },
    finishBatch() {
      snapshots.settle(spool?.busy() ?? false)
      if (done.length === 0) return
      const finished = done
      done = []
      spool?.discard(finished)
    },
    apply(effects) {
      if (early) return void early.push(...effects)
      apply(effects)
      snapshots.flush()
    },
    begin() {
      const waiting = early
      early = undefined
      if (!waiting || waiting.length === 0) return
      apply(waiting)
      snapshots.flush()
    },
    decided(seq, outcome) {
      const waiting = held.get(seq)
      if (!waiting) return
      held.delete(seq)
      finishFile(waiting.file, { ...waiting.row, outcome: outcome ?? null }, false, false)
    },
  }
}
