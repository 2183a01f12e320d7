import type { Outcome } from '@hatchway/protocol'
import type { ClaimedFile, Quarantine, Spool } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Effect } from '../commands/types.ts'
import type { RequestRow } from '../store/service-types.ts'
import type { CommandRow } from '../store/types.ts'
import type { Replies } from './replies.ts'
import type { Snapshots } from './snapshots.ts'

/**
 * What follows a durable decision. All of it can be done again: a crash anywhere in here leaves the claimed file in
 * the spool, and the next start comes back with the same row.
 */
export interface Effects {
  settle(file: ClaimedFile, row: CommandRow, effects: readonly Effect[], repeated: boolean): void
  finishBatch(): void
  apply(effects: readonly Effect[]): void
  /** A command that was held is over; undefined: it goes on as another request. Its file goes as any other does. */
  decided(seq: number, outcome: Outcome | undefined): void
}

/** Running sessions, as far as a decision concerns them. */
interface Sessions {
  /** its context begins anew with the next run */
  forget(folder: string): void
  finish(folder: string, runId: string): void
  close(folder: string, runId?: string): void
  kick(): void
}

/** Requests whose answer follows. */
interface Requests {
  accept(request: RequestRow): void
  over(seq: number, outcome: Outcome): void
  isHeld(seq: number): boolean
}

export interface EffectsOptions {
  spool(): Spool | undefined
  replies: Replies
  snapshots: Snapshots
  outbox: { kick(): void } | undefined
  quarantine: Quarantine
  groupAdded(folder: string): void
  groupRemoved(folder: string): void
  tasksChanged(): void
  groupsChanged(): void
  /** where agents run */
  sessions(): Sessions | undefined
  /** where services are asked: a daemon */
  requests(): Requests | undefined
  log: Logger
  fault: Fault
}

const nothing: readonly Effect[] = []
/** Whoever asked for it waits for the answer first. */
const followsAnswer = ({ kind }: Effect): boolean => kind === 'session_over'
const holds = (effect: Effect): boolean => effect.kind === 'request_stored' && effect.request.kind === 'held'

export function createEffects(options: EffectsOptions): Effects {
  const { replies, snapshots, outbox, quarantine, log, fault } = options
  let done: ClaimedFile[] = []
  /** files of held commands: they stay in the spool, for what is refused in the end has to be in errors/ */
  const held = new Map<number, { file: ClaimedFile; row: CommandRow }>()

  const apply = (effects: readonly Effect[]): boolean => {
    let visible = false
    for (const effect of effects) {
      switch (effect.kind) {
        case 'message_queued':
          outbox?.kick()
          break
        case 'tasks_changed':
          snapshots.tasksChanged(effect.folder)
          options.tasksChanged()
          visible = true
          break
        case 'groups_changed':
          snapshots.groupsChanged()
          options.groupsChanged()
          visible = true
          break
        case 'group_added':
          options.groupAdded(effect.folder)
          snapshots.groupAdded(effect.folder)
          visible = true
          break
        case 'group_removed':
          options.groupRemoved(effect.folder)
          break
        case 'todos_changed':
          snapshots.todosChanged(effect.folder)
          visible = true
          break
        case 'request_stored':
          options.requests()?.accept(effect.request)
          break
        case 'request_over':
          options.requests()?.over(effect.seq, effect.outcome)
          break
        case 'context_reset':
          options.sessions()?.forget(effect.folder)
          break
        case 'run_finished':
          options.sessions()?.finish(effect.folder, effect.runId)
          break
        case 'session_over':
          options.sessions()?.close(effect.folder, effect.runId)
          options.sessions()?.kick()
          break
      }
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
    else options.spool()?.discard([file])
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
      if (!outcome && !repeated && (all.some(holds) || options.requests()?.isHeld(row.seq))) {
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
      snapshots.settle(options.spool()?.busy() ?? false)
      if (done.length === 0) return
      const finished = done
      done = []
      options.spool()?.discard(finished)
    },
    apply(effects) {
      apply(effects)
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
