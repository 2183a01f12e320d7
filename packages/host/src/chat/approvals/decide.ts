import type { Outcome } from '@hatchway/protocol'
import { refused } from '../../base/outcome.ts'
import { visible } from '../../base/visible-text.ts'
import { digestOf } from '../../guard/guard.ts'
import { hostMessage } from '../../store/text-message.ts'
import type { ApprovalRow, ApprovalStatus, Ending, NewIncoming, Transaction } from '../../store/types.ts'
import { nameOf, type Person, whoIs } from './approvers.ts'
import type { Decided } from './code.ts'
import type { HeldRequests } from './held-requests.ts'
import { makeRule, ruleFrom } from './rules.ts'
import { cut, endingOf } from './text.ts'
import type { Approvals, ApprovalsOptions, Settled, Spoken } from './types.ts'

/** The ways in which a card ends: a person decides, or its request is over without one. */
export interface Decisions {
  /** `said`: the message with the decision, which is kept in the same commit */
  settle(row: ApprovalRow, spoken: Spoken, person: Person, said?: NewIncoming): Decision
  /** `digest`: others of the group may want exactly this; one of them is asked about next */
  close(row: ApprovalRow, outcome: Outcome | null, digest?: string): void
}

type Decision =
  | Extract<Settled, { ok: false }>
  /** the id of the message that decided it */
  | { ok: true; approval: ApprovalRow; id: number | undefined }

const longestWords = 500

export function createDecisions(
  options: ApprovalsOptions,
  requests: HeldRequests,
  ask: Approvals['ask'],
): Decisions {
  const { store, positions, now } = options

  /** Where people do not see the card change, they are told. */
  const announce = (transaction: Transaction, row: ApprovalRow) => {
    if (options.showsCards(row.jid)) return
    const text = `${endingOf(row)} (To ${row.action.summary})`
    transaction.insertMessage(hostMessage(positions.next(), { folder: row.group, jid: row.jid }, text, now()))
  }

  /** Its request is over, by whatever way. */
  const close = (row: ApprovalRow, outcome: Outcome | null, digest?: string) => {
    const closed: ApprovalRow = { ...row, status: statusOf(outcome), closedAt: now() }
    const isClosed = store.transaction(transaction => {
      if (!transaction.closeApproval(row.seq, closed)) return false
      // What somebody or something decided stands in the log already.
      if (closed.status === 'expired' || closed.status === 'withdrawn') {
        transaction.audit({
          at: now(),
          group: row.group,
          actor: 'agent',
          action: row.action.name,
          summary: row.action.summary,
          taint: row.taint,
          gate: 'ask',
          outcome: closed.status,
          decidedBy: 'host',
          reason: endingOf(closed),
          tookMs: now() - row.createdAt,
        })
      }
      announce(transaction, closed)
      return true
    })
    if (!isClosed) return
    options.changed(closed)
    options.said()
    // Who is gone does not want it: nobody is asked again for a group that was removed.
    if (digest !== undefined) askForNext(closed, digest)
  }

  /** A yes was for one of them; for the next a person is asked again. */
  const askForNext = ({ group, why, action }: ApprovalRow, digest: string) => {
    const [next] = requests.waitingBehind(group, digest)
    if (next) ask(next.request, next.held, why, !action.always)
  }

  const settle = (
    row: ApprovalRow,
    { decision, words: spoken = '' }: Spoken,
    person: Person,
    said?: NewIncoming,
  ): Decision => {
    const notNow = whyNotNow(row, decision, now())
    if (notNow) return notNow
    const { seq } = row
    const current = requests.at(seq)
    const digest = current?.held && digestOf(current.held.action)
    const by = nameOf(person)
    const words = decision === 'deny' ? cut(spoken.trim().toWellFormed(), longestWords) : ''
    const decideNow = (seq: number, along?: (transaction: Transaction) => void): boolean =>
      decision === 'deny'
        ? options.heldCommands.deny(
            seq,
            { by: whoIs(person), reason: `${by} said no. ${words}`.trim(), gate: 'ask' },
            along,
          )
        : options.heldCommands.release(
            seq,
            { by: whoIs(person), reason: `${by} allowed it.`, gate: 'ask' },
            along,
          )
    const ending: Ending = {
      status: decision === 'deny' ? 'denied' : 'allowed',
      decidedBy: by,
      words: words === '' ? null : visible(words),
      rule: null,
      closedAt: now(),
    }
    const settled: { approval: ApprovalRow; id: number | undefined } = { approval: row, id: undefined }
    const note = (transaction: Transaction) => {
      const wanted = current?.held && ruleFrom(decision, row, current.held)
      const rule = wanted ? makeRule(transaction, row, wanted, person, now()) : null
      settled.approval = { ...row, ...ending, rule }
      transaction.closeApproval(seq, settled.approval)
      announce(transaction, settled.approval)
      settled.id = said && transaction.hear(said)
    }
    if (digest === undefined || !decideNow(seq, note)) {
      const outcome = requests.outcomeOf(seq)
      // What is still in the request queue is over, and we are told in a moment.
      if (!current) close(row, outcome)
      return refused('wrong_state', endingOf({ ...row, status: statusOf(outcome) }))
    }
    options.changed(settled.approval)
    options.said()
    if (decision === 'allow') askForNext(row, digest)
    else for (const { request } of requests.waitingBehind(row.group, digest)) decideNow(request.seq)
    return { ok: true, ...settled }
  }

  return { settle, close }
}

/** Why a decision comes at the wrong time, or is none that can be made. */
const whyNotNow = (row: ApprovalRow, decision: Decided, at: number) => {
  if (row.status !== 'open') return refused('wrong_state', endingOf(row))
  if (at >= row.expiresAt) return refused('wrong_state', endingOf({ ...row, status: 'expired' }))
  if (decision === 'always' && !row.action.always) {
    return refused('wrong_state', 'This cannot be allowed always. Allow it once instead.')
  }
  if (decision === 'always_tool' && !row.action.standing) {
    return refused(
      'wrong_state',
      'The tool cannot be allowed whatever it is called with. Allow it once instead.',
    )
  }
  return undefined
}

const statusOf = (outcome: Outcome | null): ApprovalStatus => {
  if (outcome === null) return 'withdrawn'
  if (outcome.ok) return 'allowed'
  if (outcome.error.code === 'expired' || outcome.error.code === 'denied') return outcome.error.code
  return 'withdrawn'
}
