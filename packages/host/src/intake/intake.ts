import { channel } from 'node:diagnostics_channel'
import {
  isRefusal,
  type Outcome,
  type Refusal,
  refusal,
  type Translation,
  translate,
  type Undecodable,
} from '@hatchway/protocol'
import type { ClaimedFile, Spool } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Meter } from '../base/metrics/meter.ts'
import { StoreFailure } from '../base/storage-failure.ts'
import type { Effect } from '../commands/effects.ts'
import type { Commands } from '../commands/registry.ts'
import type { HostRules, ServiceRules } from '../commands/types.ts'
import { type Config, zoneOf } from '../config.ts'
import type { GuardRules } from '../guard/guard.ts'
import type { Effects } from '../outcomes/effects.ts'
import { wipedAt } from '../store/contexts.ts'
import type { Positions } from '../store/positions.ts'
import type { CommandEvent, CommandRow, Store, Transaction } from '../store/types.ts'
import type { RateLimit } from './rate.ts'
import { unreadable } from './unreadable.ts'

/**
 * From a claimed file to a durable decision. A file is here in one of these states, and every one of them can be
 * found again after a crash:
 *
 *   claimed    in the spool, no journal row          → is decided now
 *   decided    journal row and effects are committed → its answer is due, its file is removed or put in errors/
 *   held       journal row without an outcome        → its file stays until somebody has decided
 *   finished   answered, and the file is gone
 *
 * A file that was handed over before is first looked up in the journal by its claim's number; if its row is there it
 * is past deciding, and only what follows is done again (promise 3). A whole batch is one transaction.
 */
export interface Intake {
  consume(files: readonly ClaimedFile[]): void
  counts(): { handled: number; refused: number }
}

interface Decision {
  file: ClaimedFile
  row: CommandRow
  repeated: boolean
  effects: Effect[]
}

export interface IntakeOptions {
  config: Config
  store: Store
  positions: Positions
  spool: Pick<Spool, 'postpone'>
  commands: Commands
  effects: Pick<Effects, 'settle' | 'finishBatch'>
  rate: RateLimit
  log: Logger
  fault: Fault
  /** rows of files that may lie in their directories again, after the machine itself went down */
  handledBefore(file: ClaimedFile): CommandRow | undefined
  /** what `call_service` and `ask_user` are answered by */
  services?: ServiceRules
  /** what the host itself does for agents */
  host?: HostRules
  /** left out: nothing is guarded */
  guard?: GuardRules
  publish(event: CommandEvent): void
  hasListeners(): boolean
  /** whether commits are told to whoever measures them */
  announce: boolean
  /** left out: nothing is counted but how many there were */
  meter?: Pick<Meter, 'batch' | 'command'>
  now(): number
}

const committedChannel = channel('hatchway:committed')
const noEffects: Effect[] = []
/** characters of a file that count as one more command */
const bytesPerCommand = 4096

export function createIntake(options: IntakeOptions): Intake {
  const { config, store, positions, spool, effects, rate, log, fault, meter, now } = options
  const { limits } = config
  let handled = 0
  let refused = 0

  /** What can be known from the file alone. */
  const decode = ({ problem, text, subdirectory, inbox, mayGrow }: ClaimedFile): Translation | Undecodable =>
    problem
      ? unreadable(problem, limits.fileBytes)
      : translate(text, { directory: subdirectory, sender: inbox, depth: limits.jsonDepth, mayGrow })

  const decide = (
    file: ClaimedFile,
    decoded: Translation | Refusal,
    transaction: Transaction,
    begun: number,
  ): Decision => {
    const before = file.recovered ? transaction.handled(file.seq) : undefined
    // Only a repeat has an answer to give and no id of its own.
    if (before) {
      const repeated = before.reply !== null && before.requestId === null
      return { file, row: before, repeated, effects: noEffects }
    }
    const undone = options.handledBefore(file)
    if (undone) {
      // Known by its new number from now on, too: should this process end first, the next one asks for that.
      const row = { ...undone, seq: file.seq, requestId: null }
      transaction.insertCommand(row)
      return { file, row, repeated: false, effects: noEffects }
    }

    const translation = isTranslation(decoded) ? decoded : undefined
    const reply = translation?.reply ?? null
    const first = reply && firstOf(file.inbox, reply.id, transaction)
    const collected: Effect[] = []
    const outcome = first
      ? first.outcome
      : isTranslation(decoded)
        ? execute(file, decoded, transaction, collected)
        : refuse(decoded)
    const row: CommandRow = {
      seq: file.seq,
      group: file.inbox,
      directory: file.subdirectory,
      file: file.name,
      inode: file.inode,
      mtimeUs: file.mtimeUs,
      dialect: translation?.dialect ?? null,
      type: translation?.type ?? null,
      // A repeated request is journalled without its id: the first answer stays the one that counts.
      requestId: first ? null : (reply?.id ?? null),
      reply,
      outcome,
      receivedAt: now(),
      tookUs: Math.round((performance.now() - begun) * 1000),
    }
    transaction.insertCommand(row)
    if (outcome?.ok === false && reply === null) noteRefusal(row, outcome.error, transaction)
    return { file, row, repeated: first !== null && first !== undefined, effects: collected }
  }

  /** The request that this one repeats. Of what was asked before a wipe nobody can ask again: the answers are tainted. */
  const firstOf = (folder: string, id: string, transaction: Transaction): CommandRow | undefined => {
    const row = transaction.answered(folder, id)
    if (!row || row.receivedAt >= Number(store.meta(wipedAt(folder)) ?? 0)) return row
    store.forgetRequest(row.seq)
    return undefined
  }

  /** Hatchway's own agents ask with an id, and have their receipt. */
  const noteRefusal = ({ seq, group, type }: CommandRow, error: Refusal, transaction: Transaction) => {
    const dialect = transaction.group(group)?.dialect
    if (dialect === undefined || dialect === 'hatchway') return
    transaction.addRefusal({ seq, group, type, code: error.code, message: error.message })
  }

  const execute = (
    file: ClaimedFile,
    translation: Translation,
    transaction: Transaction,
    collected: Effect[],
  ): Outcome | null => {
    const group = transaction.group(file.inbox)
    if (!group) {
      return refuse(refusal('unregistered_group', `No group is registered for the folder ${file.inbox}.`))
    }
    const { command, claimedSender = group.folder } = translation
    // A file may leave its sender out, but not lie about it. What it claims gives no right either way.
    if (claimedSender !== group.folder) {
      return refuse(
        refusal('sender_mismatch', 'The file names another sender than the directory it lies in.'),
      )
    }
    if (isRefusal(command)) return refuse(command)
    return options.commands.perform(command, {
      transaction,
      actor: { kind: 'group', group },
      seq: positions.next(),
      now: new Date(now()),
      timezone: zoneOf(config, group.folder),
      limits,
      services: options.services,
      host: options.host,
      request: { seq: file.seq, reply: translation.reply ?? null },
      guard: options.guard,
      effect: effect => collected.push(effect),
    })
  }

  const decideAll = (
    files: readonly ClaimedFile[],
    decoded: readonly (Translation | Refusal)[],
    begun: number,
  ) =>
    store.transaction(transaction => {
      const decisions: Decision[] = []
      for (let i = 0; i < files.length; i++) {
        const file = files[i]
        const meaning = decoded[i]
        if (file && meaning) decisions.push(decide(file, meaning, transaction, begun))
      }
      fault('deciding')
      return decisions
    })

  /** One command that the host stumbles over must not take the others of its batch with it. */
  const decideOneByOne = (
    files: readonly ClaimedFile[],
    decoded: readonly (Translation | Refusal)[],
    begun: number,
  ) => {
    const decisions: Decision[] = []
    for (const [i, file] of files.entries()) {
      file.recovered = true
      const meaning = decoded[i]
      if (!meaning) continue
      const stumbled = refusal(
        'internal',
        'The host failed while handling this command; the file is kept for an operator.',
      )
      // Executed; else refused with an answer; else refused; else left where it is for the next start.
      const ways = isTranslation(meaning)
        ? [meaning, { ...meaning, command: stumbled }, stumbled]
        : [meaning, stumbled]
      for (const way of ways) {
        try {
          decisions.push(...decideAll([file], [way], begun))
          break
        } catch (error) {
          if (error instanceof StoreFailure) throw error
          log.error({ err: error, group: file.inbox, file: file.name }, 'a command could not be handled')
        }
      }
    }
    return decisions
  }

  const decideTogether = (
    files: readonly ClaimedFile[],
    decoded: readonly (Translation | Refusal)[],
    begun: number,
  ) => {
    try {
      return decideAll(files, decoded, begun)
    } catch (error) {
      if (error instanceof StoreFailure) throw error
      return decideOneByOne(files, decoded, begun)
    }
  }

  const finish = (decisions: readonly Decision[], begun: number) => {
    fault('committed')
    const tookUs = Math.round((performance.now() - begun) * 1000)
    if (options.announce && committedChannel.hasSubscribers) {
      committedChannel.publish({ files: decisions.map(({ file }) => file.name), at: process.hrtime.bigint() })
    }
    const listened = options.hasListeners()
    const refusedBefore = refused
    for (const { file, row, repeated, effects: collected } of decisions) {
      handled++
      const code = row.outcome?.ok === false ? row.outcome.error.code : undefined
      if (code !== undefined) refused++
      meter?.command(row, file.text, code, row.receivedAt - file.mtimeUs / 1000)
      effects.settle(file, row, collected, repeated)
      if (listened) options.publish(eventOf(file, row, repeated, tookUs))
    }
    meter?.batch(decisions.length, refused - refusedBefore, tookUs, now())
    effects.finishBatch()
  }

  const charge = (files: readonly ClaimedFile[], time: number) => {
    let from = 0
    for (let i = 1; i <= files.length; i++) {
      const inbox = files[from]?.inbox
      if (inbox === undefined || files[i]?.inbox === inbox) continue
      let weight = i - from
      for (let n = from; n < i; n++) weight += Math.floor((files[n]?.text.length ?? 0) / bytesPerCommand)
      rate.take(inbox, weight, time)
      from = i
    }
  }

  return {
    consume(files) {
      const begun = performance.now()
      const taken: ClaimedFile[] = []
      const decoded: (Translation | Refusal)[] = []
      for (const file of files) {
        file.inode = countable(file.inode)
        file.mtimeUs = countable(file.mtimeUs)
        const meaning = decode(file)
        if (!isTranslation(meaning) && meaning.incomplete && file.mayGrow) {
          spool.postpone(file)
          continue
        }
        taken.push(file)
        decoded.push(isTranslation(meaning) ? meaning : meaning.refusal)
      }
      if (taken.length === 0) return
      charge(taken, begun)
      fault('decoded')
      finish(decideTogether(taken, decoded, begun), begun)
    },
    counts: () => ({ handled, refused }),
  }
}

const refuse = (error: Refusal): Outcome => ({ ok: false, error })

/**
 * The journal keeps numbers that it can give back. A file's time is its writer's to choose, in any century, and some
 * file systems count their files with 64 bits.
 */
const countable = (number: number): number =>
  Number.isSafeInteger(number) ? number : number % Number.MAX_SAFE_INTEGER

const isTranslation = (meaning: Translation | Refusal | Undecodable): meaning is Translation =>
  'dialect' in meaning

const eventOf = (file: ClaimedFile, row: CommandRow, repeated: boolean, tookUs: number): CommandEvent => ({
  seq: row.seq,
  group: row.group,
  file: row.file,
  dialect: row.dialect,
  type: row.type,
  requestId: row.reply?.id ?? null,
  outcome: row.outcome,
  receivedAt: row.receivedAt,
  tookUs,
  waitedMs: Math.max(0, Math.round(row.receivedAt - file.mtimeUs / 1000)),
  repeated,
})
