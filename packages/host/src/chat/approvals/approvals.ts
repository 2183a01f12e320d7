import { type ErrorCode, type Group, type Outcome, type Refusal, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { isStorageFailure } from '../../base/storage-failure.ts'
import { visible } from '../../base/visible-text.ts'
import type { Config } from '../../config.ts'
import { digestOf, type Held, heldIn } from '../../guard/guard.ts'
import type { HeldCommands } from '../../services/held.ts'
import type { RequestQueue } from '../../services/request-queue.ts'
import type { NewIncoming } from '../../store/agent-types.ts'
import type { ApprovalRow, ApprovalStatus, Ending, Shown } from '../../store/approvals.ts'
import type { Positions } from '../../store/positions.ts'
import type { RequestRow } from '../../store/service-types.ts'
import { textMessage } from '../../store/text-message.ts'
import type { Store, Transaction } from '../../store/types.ts'
import { deciders, mayDecide, nameOf, operator, type Person, whoIs } from './approvers.ts'
import { createAttempts } from './attempts.ts'
import { type ApprovalCard, byId, cardOf, findApproval } from './card.ts'
import { type Decided, decisionIn, newCode } from './code.ts'
import { knownChats } from './lookalikes.ts'
import { makeRule } from './rules.ts'
import { cut, endingOf, reasonOf, shownAction, textOfApproval, wholeOf } from './text.ts'

/**
 * What agents are not to do without a person, from the card in the chat to the word that counts.
 *
 *   open        waits for a person; its request is held in the request queue
 *   allowed     a person let it happen; with "always", a rule lets exactly this happen from now on
 *   denied      a person said no
 *   expired     nobody decided in time; the request queue says when that is
 *   withdrawn   nobody wants it any longer
 *
 * What was decided is done, noted on its card, and made a rule, in one commit: nothing says "allowed" that did not
 * happen, and nothing happens that nobody is known to have allowed. What ends otherwise closes its card afterwards; a
 * crash in between leaves a card whose request is over, which `mend` closes. Nothing of it is read from a file.
 */
export interface Approvals {
  /** for the watch: a rule that lets it happen */
  ruleFor(group: string, digest: string): { by: `rule:${string}` } | undefined
  /** for the watch: a person has to decide */
  ask(request: RequestRow, held: Held, why: string, hasSecrets?: boolean): void
  /** whether a person has been asked, and nothing has come of it yet */
  isAsked(seq: number): boolean

  mayDecide(group: Pick<Group, 'folder'>, person: Person): boolean
  /** what a text said in a chat decides; undefined: nothing, and it is a message like any other */
  meantBy(group: Group, person: Person, text: string): Take | Refusal | undefined
  /** decided in its card */
  choose(chat: { jid: string; folder: string }, id: string, spoken: Spoken, person: Person): Settled
  /** decided by whoever may use the command line: an id or a code, of any group */
  decide(which: string, spoken: Spoken): Settled

  /** all that is in it, for as long as it is open */
  wholeOf(row: ApprovalRow): Shown | undefined
  /** of the message that tells people of it */
  cardIn(message: { kind: string; id: number }): ApprovalCard | undefined
  cardOf(row: ApprovalRow): ApprovalCard

  /** for the request queue: the outcome of a request is durable. Throws, with nothing done, if the store fails. */
  over(request: RequestRow, outcome: Outcome): void
  /** after a start, once the request queue knows what is open */
  mend(): void
}

/** Keeps what was said, and does what it says: the id of the message; undefined where it came before. */
type Take = (said: NewIncoming) => number | undefined
export interface Spoken {
  decision: Decided
  words?: string | undefined
}
export type Settled = { ok: true; approval: ApprovalRow } | { ok: false; error: Refusal }

export interface ApprovalsOptions {
  store: Store
  config: Pick<Config, 'groups' | 'timezone' | 'limits'>
  positions: Positions
  heldCommands(): Pick<HeldCommands, 'release' | 'deny' | 'refuse'> | undefined
  requestQueue():
    | Pick<RequestQueue, 'open' | 'isWaiting' | 'isAbandoned' | 'answer' | 'groupGone'>
    | undefined
  /** there is something new to show of it */
  changed(row: ApprovalRow): void
  /** there is something to deliver */
  said(): void
  /** whether people there see a card change; where they do not, they are told */
  showsCards(jid: string): boolean
  log: Logger
  now(): number
}

const wrongCodesPerMinute = 5
const strangersPerMinute = 5
const longestWords = 500
/** Of the requests that a group may have open, one in so many may wait for a person. */
const openShare = 10
/** So many may be asked and taken back in a while before nobody is asked for the group any more. */
const takenBackCards = 10
const takenBackMs = 600_000

export function createApprovals(options: ApprovalsOptions): Approvals {
  const { store, config, positions, log, now } = options
  const wrongCodes = createAttempts({ perMinute: wrongCodesPerMinute, now })
  const strangers = createAttempts({ perMinute: strangersPerMinute, now })

  const heldAt = (seq: number): RequestRow | undefined =>
    options
      .requestQueue()
      ?.open()
      .find(request => request.seq === seq && request.kind === 'held')

  const digestAt = (seq: number): string | undefined => {
    const request = heldAt(seq)
    const held = request && heldIn(request)
    return held && digestOf(held.action)
  }

  /** What the request has come to: one that was released, and is still at work under the same number, was let through. */
  const outcomeOf = (seq: number): Outcome | null =>
    options
      .requestQueue()
      ?.open()
      .some(request => request.seq === seq && request.kind !== 'held')
      ? { ok: true, result: {} }
      : store.questions.outcome(seq)

  /** Says something in the chat, in a transaction that is open already. */
  const say = (transaction: Transaction, chat: { folder: string; jid: string }, text: string) =>
    transaction.insertMessage(textMessage(positions.next(), chat, text, now()))
  const tell = (transaction: Transaction, row: ApprovalRow) => {
    if (options.showsCards(row.jid)) return
    say(transaction, { folder: row.group, jid: row.jid }, `${endingOf(row)} (To ${row.action.summary})`)
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
      tell(transaction, closed)
      return true
    })
    if (!isClosed) return
    options.changed(closed)
    options.said()
    // Who is gone does not want it: nobody is asked again for a group that was removed.
    if (digest !== undefined) askForNext(closed, digest)
  }

  /** Others of the group that want exactly this wait behind its card. */
  const waitingBehind = (group: string, digest: string): { request: RequestRow; held: Held }[] => {
    const requestQueue = options.requestQueue()
    return (requestQueue?.open() ?? []).flatMap(request => {
      if (request.kind !== 'held' || request.group !== group || !requestQueue?.isWaiting(request.seq))
        return []
      if (store.approvals.approval(request.seq)) return []
      const held = heldIn(request)
      return held && digestOf(held.action) === digest ? [{ request, held }] : []
    })
  }

  /** A yes was for one of them; for the next a person is asked again. */
  const askForNext = ({ group, why, action }: ApprovalRow, digest: string) => {
    const [next] = waitingBehind(group, digest)
    if (next) ask(next.request, next.held, why, !action.always)
  }

  /** Why nobody is asked for this group for now. */
  const flooding = (folder: string, open: number): Refusal | undefined => {
    if (open >= Math.ceil(config.limits.openRequests / openShare)) {
      return refusal(
        'quota_exceeded',
        `${open} requests of this group wait for a person already. Wait for those.`,
      )
    }
    const takenBack = store.approvals.withdrawnSince(folder, now() - takenBackMs)
    return takenBack < takenBackCards
      ? undefined
      : refusal(
          'quota_exceeded',
          `People were asked ${takenBack} times in the last minutes for what was then taken back. Wait ten minutes.`,
        )
  }

  const settle = (
    row: ApprovalRow,
    { decision, words: spoken = '' }: Spoken,
    person: Person,
    said?: NewIncoming,
  ): (Settled & { ok: false }) | { ok: true; approval: ApprovalRow; id: number | undefined } => {
    if (row.status !== 'open') return refused('wrong_state', endingOf(row))
    if (now() >= row.expiresAt) return refused('wrong_state', endingOf({ ...row, status: 'expired' }))
    if (decision === 'always' && !row.action.always) {
      return refused('wrong_state', 'This can only be allowed once: it is something else the next time.')
    }
    const heldCommands = options.heldCommands()
    if (!heldCommands) return refused('unavailable', 'The host is not ready for decisions yet.')
    const { seq } = row
    const request = heldAt(seq)
    const held = request && heldIn(request)
    const by = nameOf(person)
    const words = decision === 'deny' ? cut(spoken.trim().toWellFormed(), longestWords) : ''
    const decideNow = (seq: number, along?: (transaction: Transaction) => void): boolean =>
      decision === 'deny'
        ? heldCommands.deny(
            seq,
            { by: whoIs(person), reason: `${by} said no. ${words}`.trim(), gate: 'ask' },
            along,
          )
        : heldCommands.release(seq, { by: whoIs(person), reason: `${by} allowed it.`, gate: 'ask' }, along)
    const ending: Ending = {
      status: decision === 'deny' ? 'denied' : 'allowed',
      decidedBy: by,
      words: words === '' ? null : visible(words),
      rule: null,
      closedAt: now(),
    }
    const digest = held && digestOf(held.action)
    const settled: { approval: ApprovalRow; id: number | undefined } = { approval: row, id: undefined }
    const note = (transaction: Transaction) => {
      const isAlways = decision === 'always' && digest !== undefined
      const rule = isAlways ? makeRule(transaction, row, digest, person, now()) : null
      settled.approval = { ...row, ...ending, rule }
      transaction.closeApproval(seq, settled.approval)
      tell(transaction, settled.approval)
      settled.id = said && transaction.hear(said)
    }
    if (digest === undefined || !decideNow(seq, note)) {
      const outcome = outcomeOf(seq)
      // What is still in the request queue is over, and we are told in a moment.
      if (!request) close(row, outcome)
      return refused('wrong_state', endingOf({ ...row, status: statusOf(outcome) }))
    }
    options.changed(settled.approval)
    options.said()
    if (decision === 'allow') askForNext(row, digest)
    else for (const { request } of waitingBehind(row.group, digest)) decideNow(request.seq)
    return { ok: true, ...settled }
  }

  const ask: Approvals['ask'] = (request, held, why, hasSecrets = false) => {
    const { seq, expiresAt } = request
    try {
      const group = store.group(request.group)
      // After a restart the watch looks at it again; who was asked has been asked.
      if (!group || store.approvals.approval(seq)) return
      if (options.requestQueue()?.isAbandoned(seq)) {
        options.heldCommands()?.refuse(seq, takenBack.error)
        return
      }
      const open = store.approvals.open().filter(row => row.group === group.folder)
      const digest = digestOf(held.action)
      // Whoever decides about one card decides about the others, or is asked about them in turn.
      if (open.some(row => digestAt(row.seq) === digest)) return
      const refused = flooding(group.folder, open.length)
      if (refused) {
        options.heldCommands()?.refuse(seq, refused)
        return
      }
      const row: ApprovalRow = {
        seq,
        group: group.folder,
        jid: group.jid,
        messageId: positions.next(),
        code: newCode(),
        action: shownAction(held.action, knownChats(store.groups()), !hasSecrets),
        taint: held.taint,
        why: reasonOf(why, held.taint),
        status: 'open',
        decidedBy: null,
        words: null,
        rule: null,
        createdAt: now(),
        expiresAt,
        closedAt: null,
      }
      const about = { deciders: deciders(config, group.folder), timezone: config.timezone }
      store.transaction(transaction => {
        transaction.insertMessage({
          ...textMessage(row.messageId, group, textOfApproval(row, about), row.createdAt),
          kind: 'approval',
        })
        transaction.insertApproval(row)
        transaction.audit({
          at: row.createdAt,
          group: group.folder,
          actor: 'agent',
          action: row.action.name,
          summary: row.action.summary,
          taint: held.taint,
          gate: 'ask',
          outcome: 'held',
          reason: row.why,
          requestId: request.reply?.id ?? null,
        })
      })
      options.said()
    } catch (error) {
      // The watch asks again, once there is room.
      if (isStorageFailure(error)) throw error
      // Nobody is asked, so nobody allows it: the request queue lets it expire.
      log.error({ err: error, request: seq }, 'a person could not be asked')
    }
  }

  /** The answer to somebody who cannot decide this, in the chat where they tried to. */
  const reply = (said: NewIncoming, text: string): number | undefined => {
    const id = store.transaction(transaction => {
      const id = transaction.hear(said)
      if (id !== undefined) say(transaction, { folder: said.group, jid: said.jid }, text)
      return id
    })
    options.said()
    return id
  }

  return {
    ruleFor(group, digest) {
      const rule = store.approvals.ruleFor(group, digest)
      return rule && { by: `rule:${rule.id}` }
    },
    ask,
    isAsked: seq => store.approvals.approval(seq)?.status === 'open',

    mayDecide: ({ folder }, person) => mayDecide(config, folder, person),
    meantBy(group, person, text) {
      const meant = decisionIn(text)
      if (!meant) return undefined
      const { jid, folder } = group
      if (!mayDecide(config, folder, person)) {
        if (strangers.areTooMany(jid)) return tooMany
        return said => {
          strangers.count(jid)
          return reply(said, `${nameOf(person)} may not decide that; ${deciders(config, folder)} may.`)
        }
      }
      if (wrongCodes.areTooMany(jid)) return tooMany
      return said => {
        const row = store.approvals.byCode(jid, meant.code)
        if (row?.group !== folder) {
          wrongCodes.count(jid)
          log.warn({ group: folder, jid, sender: person.sender }, 'a wrong code was said')
          return reply(said, 'Nothing waits here under this code.')
        }
        if (meant.decision === 'always' && row.action.payload.more > 0) {
          return reply(
            said,
            `Not all of it was shown here. Look at it with approvals show ${row.seq}, or in the console.`,
          )
        }
        const settled = settle(row, meant, person, said)
        return settled.ok ? settled.id : reply(said, settled.error.message)
      }
    },
    choose({ jid, folder }, id, spoken, person) {
      const row = byId(store.approvals, id)
      if (!row || row.jid !== jid || row.group !== folder) {
        return refused('not_found', 'Nothing of this id waits in this chat.')
      }
      if (!mayDecide(config, folder, person)) {
        return refused('forbidden', `${nameOf(person)} may not decide that; ${deciders(config, folder)} may.`)
      }
      return settle(row, spoken, person)
    },
    decide(which, spoken) {
      const row = findApproval(store.approvals, which)
      if (!row) return refused('not_found', 'Nothing has this id, and nothing that waits has this code.')
      return settle(row, spoken, operator)
    },
    wholeOf({ seq }) {
      const request = heldAt(seq)
      const held = request && heldIn(request)
      return held && wholeOf(held.action.payload, knownChats(store.groups()))
    },
    cardIn({ kind, id }) {
      const row = kind === 'approval' ? store.approvals.byMessage(id) : undefined
      return row && cardOf(config, row)
    },
    cardOf: row => cardOf(config, row),

    over(request, outcome) {
      const row = store.approvals.approval(request.seq)
      if (row?.status !== 'open') return
      const held = heldIn(request)
      close(row, outcome, held && digestOf(held.action))
    },
    mend() {
      const requestQueue = options.requestQueue()
      const held = (requestQueue?.open() ?? []).filter(({ kind }) => kind === 'held')
      for (const { seq, group } of held) {
        const row = store.approvals.approval(seq)
        if (!store.group(group)) requestQueue?.groupGone(group)
        // Its group was removed, and may be another by now.
        else if (row && row.status !== 'open') requestQueue?.answer(seq, takenBack)
      }
      const isHeld = new Set(held.map(({ seq }) => seq))
      for (const row of store.approvals.open()) {
        if (!isHeld.has(row.seq)) close(row, outcomeOf(row.seq))
      }
    },
  }
}

const takenBack = {
  ok: false,
  error: refusal('cancelled', 'The request was taken back: nobody wants it any longer.'),
} as const

const tooMany = refusal('quota_exceeded', 'That was wrong too often. Wait a minute.')

const refused = (code: ErrorCode, message: string) => ({ ok: false, error: refusal(code, message) }) as const

const statusOf = (outcome: Outcome | null): ApprovalStatus => {
  if (outcome === null) return 'withdrawn'
  if (outcome.ok) return 'allowed'
  if (outcome.error.code === 'expired' || outcome.error.code === 'denied') return outcome.error.code
  return 'withdrawn'
}
