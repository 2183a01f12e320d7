import { type Group, type Outcome, type Refusal, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Retries } from '../base/retry.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { Gate, Taint, Verdict } from '../base/taint.ts'
import type { Effect } from '../commands/effects.ts'
import type { Commands } from '../commands/registry.ts'
import type { Evidence } from '../commands/service-tools.ts'
import type { CommandContext } from '../commands/types.ts'
import { digestOf, digestsOf, type GuardRules, type Held, heldIn } from '../guard/guard.ts'
import type { Effects } from '../outcomes/effects.ts'
import type { RequestRow, Store, Transaction, Who } from '../store/types.ts'
import { ServiceRefusal } from './define.ts'
import type { RequestQueue } from './request-queue.ts'

/**
 * Commands that somebody has to look at before they happen: searched for secrets, shown to the inspector, and, where
 * that is not enough, to a person. Whatever goes wrong on the way ends with a person or with no (promise 9).
 */
export interface HeldCommands {
  take(request: RequestRow, signal: AbortSignal): void
  /**
   * It happens now, with the rights its group has now; false: it was over. `along` is noted in the same commit: what
   * was decided and that it was decided are never apart.
   */
  release(seq: number, decision: Decision, along?: Along): boolean
  deny(seq: number, decision: Decision, along?: Along): boolean
  /** it is not put to anybody */
  refuse(seq: number, error: Refusal): boolean
}

interface Decision {
  by: Who
  reason: string
  gate: Gate
}

type Along = (transaction: Transaction) => void

export interface HeldCommandsOptions {
  store: Store
  commands: Commands
  requestQueue: Pick<RequestQueue, 'over' | 'forget'>
  effects: Pick<Effects, 'apply' | 'decided'>
  rules: GuardRules
  /** what the released command needs, as any other does */
  context(folder: string): Pick<CommandContext, 'seq' | 'now' | 'timezone' | 'limits' | 'services' | 'host'>
  findSecrets(
    payload: unknown,
    options: { group: string; signal: AbortSignal },
  ): Promise<readonly { kind: string; where: string }[]>
  /** what the command would be done with and does not say; throws a `ServiceRefusal` for a clear no */
  evidence(held: Held, group: Group, signal: AbortSignal): Promise<Evidence | undefined>
  inspect(
    question: { action: Held['action']; taint: Taint; why: string },
    signal: AbortSignal,
  ): Promise<Verdict>
  approvals: {
    /** a person's earlier word that this may always happen */
    ruleFor(group: string, digests: readonly string[]): { by: Who } | undefined
    /** `hasSecrets`: what was said once does not count for the next time */
    ask(request: RequestRow, held: Held, why: string, hasSecrets?: boolean): void
    /** before a restart, perhaps */
    isAsked(seq: number): boolean
  }
  retries: Pick<Retries, 'inBackground'>
  fault: Fault
  log: Logger
  now(): number
}

export function createHeldCommands(options: HeldCommandsOptions): HeldCommands {
  const { store, rules, log, now } = options

  const settle = (
    seq: number,
    decision: Decision,
    decide: (transaction: Transaction, request: RequestRow, effects: Effect[]) => Outcome | null,
    along?: Along,
  ): boolean => {
    const effects: Effect[] = []
    const result = store.transaction(transaction => {
      const request = transaction.removeRequest(seq, 'held')
      if (!request) return undefined
      const outcome = decide(transaction, request, effects)
      if (outcome) {
        transaction.insertRequest(request)
        transaction.answerRequest(seq, outcome, now())
      }
      const held = heldIn(request)
      transaction.audit({
        at: now(),
        group: request.group,
        actor: 'agent',
        decidedBy: decision.by,
        action: request.tool,
        summary: held?.action.summary ?? request.tool,
        taint: held?.taint ?? { corrupted: true, secret: true },
        gate: decision.gate,
        outcome: outcome?.ok === false ? 'denied' : 'allowed',
        reason: decision.reason,
        requestId: request.reply?.id ?? null,
        tookMs: now() - request.createdAt,
      })
      along?.(transaction)
      return { outcome }
    })
    if (!result) return false
    options.fault('released')
    if (result.outcome) options.requestQueue.over(seq, result.outcome)
    // It goes on as another request under the same number.
    else {
      options.requestQueue.forget(seq)
      options.effects.decided(seq, undefined)
    }
    options.effects.apply(effects)
    return true
  }

  const contextOf = (request: RequestRow, group: Group, transaction: Transaction) => ({
    ...options.context(request.group),
    transaction,
    actor: { kind: 'group' as const, group },
    request: { seq: request.seq, reply: request.reply },
    guard: rules,
  })

  /** Its tool may have other labels since it was held, before a restart. */
  const asItIsNow = (request: RequestRow, held: Held): Held => {
    if (held.standing === undefined) return held
    const standing = store.transaction(transaction => {
      const group = transaction.group(request.group)
      if (!group) return undefined
      const context = { ...contextOf(request, group, transaction), effect: () => {} }
      return options.commands.standing(held.command, held.taint, context)
    })
    return { ...held, standing }
  }

  const release: HeldCommands['release'] = (seq, decision, along) =>
    settle(
      seq,
      decision,
      (transaction, request, effects) => {
        const held = heldIn(request)
        const group = transaction.group(request.group)
        if (!held || !group) return denied('The group is no longer registered.')
        return options.commands.perform(held.command, {
          ...contextOf(request, group, transaction),
          isReleased: true,
          releasedBy: decision.by,
          seen: held.taint,
          heldIn: held.runId,
          provider: held.provider,
          shown: { digest: digestOf(held.action), evidence: held.evidence },
          effect: effect => effects.push(effect),
        })
      },
      along,
    )

  const deny: HeldCommands['deny'] = (seq, decision, along) =>
    settle(seq, decision, () => denied(decision.reason), along)

  const refuse = (seq: number, error: Refusal) =>
    settle(seq, { by: 'host', reason: error.message, gate: 'block' }, () => ({ ok: false, error }))

  /** Keeps what was looked up with the request: what is shown is what is held, and what is done. */
  const keep = (request: RequestRow, held: Held, { fields }: Evidence): Held | undefined => {
    const action = { ...held.action, payload: { ...held.action.payload, ...fields } }
    const input = { ...request.input, action, evidence: fields }
    const isKept = store.transaction(transaction => {
      const stored = transaction.removeRequest(request.seq, 'held')
      if (stored) transaction.insertRequest({ ...stored, input })
      return stored !== undefined
    })
    if (isKept !== true) return undefined
    // The one in the request queue is this object.
    request.input = input
    return { ...held, action, evidence: fields }
  }

  /** What it would be done with. Without it nobody could say what they decide, so nobody is asked. */
  const lookUp = async (request: RequestRow, held: Held, signal: AbortSignal) => {
    const group = store.group(request.group)
    if (!group) return undefined
    try {
      return { evidence: await options.evidence(held, group, signal) }
    } catch (error) {
      if (signal.aborted) return undefined
      if (isStorageFailure(error)) throw error
      if (!(error instanceof ServiceRefusal)) log.error({ err: error, seq: request.seq }, 'nothing to show')
      refuse(
        request.seq,
        error instanceof ServiceRefusal
          ? refusal(error.code, error.message)
          : refusal('service_failed', 'What it would do could not be looked up, so nobody was asked.'),
      )
      return undefined
    }
  }

  const search = async (request: RequestRow, payload: unknown, signal: AbortSignal) => {
    try {
      return await options.findSecrets(payload, { group: request.group, signal })
    } catch (error) {
      log.error({ err: error, seq: request.seq }, 'the search for secrets failed')
      return [{ kind: 'search_failed', where: 'payload' }]
    }
  }

  const review = async (request: RequestRow, signal: AbortSignal) => {
    const { seq } = request
    const wanted = heldIn(request)
    if (!wanted) return deny(seq, { by: 'host', reason: 'It cannot be read back.', gate: 'block' })
    const found = await lookUp(request, wanted, signal)
    if (!found || signal.aborted) return
    const held = found.evidence ? keep(request, wanted, found.evidence) : wanted
    if (!held) return
    const { action, taint } = held
    const ask = (why: string, hasSecrets = false) => options.approvals.ask(request, held, why, hasSecrets)
    const secrets = await search(request, action.payload, signal)
    if (signal.aborted) return
    // A rule does not count for secrets: whoever made it may not have seen them, on a card that was cut, or in a file.
    const secret = secrets[0] ?? found.evidence?.secret
    if (secret) {
      return ask(
        withExposure(taint, `It contains what looks like a secret (${secret.kind}, in ${secret.where}).`),
        true,
      )
    }
    const rule = options.approvals.ruleFor(request.group, digestsOf(asItIsNow(request, held)))
    if (rule) return release(seq, { by: rule.by, reason: 'always allowed', gate: held.gate })
    if (held.gate === 'allow') {
      return release(seq, { by: 'host', reason: 'no secrets were found in it', gate: 'allow' })
    }
    if (held.gate === 'ask') return ask(whyOf(taint))
    const { verdict, reason, by } = await options.inspect({ action, taint, why: whyOf(taint) }, signal)
    if (signal.aborted) return
    const inspector: Who = `inspector:${by}`
    if (verdict === 'allow') return release(seq, { by: inspector, reason, gate: 'inspect' })
    if (verdict === 'deny') {
      return deny(seq, { by: inspector, reason: `The inspector said no: ${reason}`, gate: 'inspect' })
    }
    return ask(`${whyOf(taint)} The inspector is not sure: ${reason}`)
  }

  return {
    take(request, signal) {
      if (options.approvals.isAsked(request.seq)) return
      options.retries.inBackground('review of a held command', async () => {
        if (signal.aborted) return
        try {
          await review(request, signal)
        } catch (error) {
          // Where the disk fails a person could not be asked either: it is looked at again.
          if (isStorageFailure(error)) throw error
          log.error(
            { err: error, seq: request.seq },
            'a held command could not be reviewed; a person is asked',
          )
          const held = heldIn(request)
          if (held && !signal.aborted) {
            options.approvals.ask(request, held, withExposure(held.taint, 'The guard failed to check it.'))
          }
        }
      })
    },
    release,
    deny,
    refuse,
  }
}

const denied = (message: string): Outcome => ({ ok: false, error: refusal('denied', message) })

/** What the conversation has read; undefined: nothing that counts. */
const exposureOf = ({ corrupted, secret }: Taint): string | undefined => {
  if (corrupted && secret)
    return 'The conversation has read secrets, and text that strangers may have written.'
  if (corrupted) return 'The conversation has read text that strangers may have written.'
  return secret ? 'The conversation has read secrets.' : undefined
}

const whyOf = (taint: Taint): string => exposureOf(taint) ?? 'It goes out.'

/** The exposure comes first, so that a long reason that is cut cannot hide it. */
const withExposure = (taint: Taint, reason: string): string =>
  [exposureOf(taint), reason].filter(text => text !== undefined).join(' ')
