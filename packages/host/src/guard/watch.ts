import { type Outcome, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Effects } from '../effects/effects.ts'
import { perform } from '../operations/index.ts'
import type { Effect, OperationContext } from '../operations/types.ts'
import type { Desk } from '../services/desk.ts'
import type { Who } from '../store/audit-types.ts'
import type { RequestRow } from '../store/service-types.ts'
import type { Store, Transaction } from '../store/types.ts'
import { digestOf, type GuardRules, type Held, heldIn } from './guard.ts'
import type { Gate, Taint, Verdict } from './types.ts'

/**
 * Commands that somebody has to look at before they happen: searched for secrets, shown to the inspector, and, where
 * that is not enough, to a person. Whatever goes wrong on the way ends with a person or with no (promise 9).
 */
export interface Watch {
  take(request: RequestRow, signal: AbortSignal): void
  /** it happens now, with the rights its group has now; false: it was over */
  release(seq: number, decision: Decision): boolean
  deny(seq: number, decision: Decision): boolean
}

interface Decision {
  by: Who
  reason: string
  gate: Gate
}

export interface WatchOptions {
  store: Store
  desk(): Desk | undefined
  effects: Pick<Effects, 'apply'>
  rules: GuardRules
  /** what the released command needs, as any other does */
  context(): Pick<OperationContext, 'seq' | 'now' | 'timezone' | 'limits' | 'services' | 'host'>
  findSecrets(
    payload: unknown,
    options: { group: string; signal: AbortSignal },
  ): Promise<readonly { kind: string; where: string }[]>
  inspect(
    question: { action: Held['action']; taint: Taint; why: string },
    signal: AbortSignal,
  ): Promise<Verdict>
  approvals: {
    /** a person's earlier word that this may always happen */
    ruleFor(group: string, digest: string): { by: Who } | undefined
    ask(request: RequestRow, held: Held, why: string): void
    /** before a restart, perhaps */
    isAsked(seq: number): boolean
  }
  log: Logger
  now(): number
}

export function createWatch(options: WatchOptions): Watch {
  const { store, rules, log, now } = options

  const settle = (
    seq: number,
    decision: Decision,
    decide: (transaction: Transaction, request: RequestRow, effects: Effect[]) => Outcome | null,
  ): boolean => {
    const effects: Effect[] = []
    const result = store.transaction({ requests: [], taskIds: [] }, transaction => {
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
      return { outcome }
    })
    if (result instanceof Promise)
      throw new Error('the store answers later, which the guard does not know yet')
    if (!result) return false
    if (result.outcome) options.desk()?.over(seq, result.outcome)
    // It goes on as another request under the same number.
    else options.desk()?.forget(seq)
    options.effects.apply(effects)
    return true
  }

  const release = (seq: number, decision: Decision) =>
    settle(seq, decision, (transaction, request, effects) => {
      const held = heldIn(request)
      const group = transaction.group(request.group)
      if (!held || !group) return denied('The group is no longer registered.')
      return perform(held.command, {
        ...options.context(),
        transaction,
        actor: { kind: 'group', group },
        request: { seq, reply: request.reply },
        guard: rules,
        isReleased: true,
        releasedBy: decision.by,
        seen: held.taint,
        heldIn: held.runId,
        effect: effect => effects.push(effect),
      })
    })

  const deny = (seq: number, decision: Decision) => settle(seq, decision, () => denied(decision.reason))

  const look = async (request: RequestRow, signal: AbortSignal) => {
    const { seq } = request
    const held = heldIn(request)
    if (!held) return deny(seq, { by: 'host', reason: 'It cannot be read back.', gate: 'block' })
    const { action, taint } = held
    const rule = options.approvals.ruleFor(request.group, digestOf(action))
    if (rule) return release(seq, { by: rule.by, reason: 'always allowed', gate: held.gate })
    const ask = (why: string) => options.approvals.ask(request, held, why)
    const secrets = await options.findSecrets(action.payload, { group: request.group, signal })
    if (signal.aborted) return
    const [secret] = secrets
    if (secret) return ask(`It holds what looks like a secret (${secret.kind}, in ${secret.where}).`)
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
      look(request, signal).catch(error => {
        log.error(
          { err: error, seq: request.seq },
          'a held command could not be looked at; a person is asked',
        )
        const held = heldIn(request)
        if (held && !signal.aborted) options.approvals.ask(request, held, 'The guard failed to look at it.')
      })
    },
    release,
    deny,
  }
}

const denied = (message: string): Outcome => ({ ok: false, error: refusal('denied', message) })

const whyOf = ({ corrupted, secret }: Taint): string => {
  if (corrupted && secret)
    return 'The conversation has read secrets, and text that strangers may have written.'
  if (corrupted) return 'The conversation has read text that strangers may have written.'
  return secret ? 'The conversation has read secrets.' : 'It goes out.'
}
