import type { Group, Outcome, Refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { refused } from '../../base/outcome.ts'
import type { Config } from '../../config.ts'
import { digestOf, type Held, heldIn } from '../../guard/guard.ts'
import type { HeldCommands } from '../../services/held.ts'
import type { RequestQueue } from '../../services/request-queue.ts'
import type { Positions } from '../../store/positions.ts'
import type { ApprovalRow, NewIncoming, RequestRow, Shown, Store } from '../../store/types.ts'
import { deciders, isShownIn, mayDecide, nameOf, operator, type Person } from './approvers.ts'
import { createAsk, takenBack } from './ask.ts'
import { type ApprovalCard, byId, cardOf, findApproval } from './card.ts'
import type { Decided } from './code.ts'
import { createDecisions } from './decide.ts'
import { createHeldRequests } from './held-requests.ts'
import { knownChats } from './lookalikes.ts'
import { createSpoken } from './spoken.ts'
import { notAllShown, wholeOf } from './text.ts'

/**
 * Approvals: what agents may not do without a person, from the card in the chat to the decision. A card is
 *
 *   state       meaning                                                    next
 *   open        waits for a person; its request is held in the queue       any of the others
 *   allowed     a person let it happen; with "always" there is a rule,     -
 *               and exactly this happens without a card from now on
 *   denied      a person said no                                           -
 *   expired     nobody decided in time; the request queue says when        -
 *   withdrawn   nobody wants it any longer                                 -
 *
 * What was decided is done, noted on its card, and made a rule, in one commit: nothing says "allowed" that did not
 * happen, and nothing happens that nobody is known to have allowed. What ends otherwise closes its card afterwards; a
 * crash in between leaves a card whose request is over, which `mend` closes. Nothing of it is read from a file.
 */
export interface Approvals {
  /** for the guard: a rule that lets it happen */
  ruleFor(group: string, digest: string): { by: `rule:${string}` } | undefined
  /** for the guard: a person has to decide */
  ask(request: RequestRow, held: Held, why: string, hasSecrets?: boolean): void
  /** whether a person has been asked, and nothing has come of it yet */
  isAsked(seq: number): boolean

  /** in the group's own chat */
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
  heldCommands: Pick<HeldCommands, 'release' | 'deny' | 'refuse'>
  /** undefined: nothing waits */
  requestQueue: Pick<RequestQueue, 'open' | 'isWaiting' | 'isAbandoned' | 'answer' | 'groupGone'> | undefined
  /** there is something new to show of it */
  changed(row: ApprovalRow): void
  /** there is something to deliver */
  said(): void
  /** whether people there see a card change; where they do not, they are told */
  showsCards(jid: string): boolean
  /** the platform of a group's own chat, if a chat in which people are asked for it is on another */
  homeOf(folder: string, jid: string): string | undefined
  log: Logger
  now(): number
}

export function createApprovals(options: ApprovalsOptions): Approvals {
  const { store, config } = options
  const requests = createHeldRequests(options)
  const ask = createAsk(options, requests)
  const { settle, close } = createDecisions(options, requests, ask)

  return {
    ruleFor(group, digest) {
      const rule = store.approvals.ruleFor(group, digest)
      return rule && { by: `rule:${rule.id}` }
    },
    ask,
    isAsked: seq => store.approvals.approval(seq)?.status === 'open',

    mayDecide: ({ folder }, person) => mayDecide(config, folder, person),
    meantBy: createSpoken(options, settle),
    choose(chat, id, spoken, person) {
      const row = byId(store.approvals, id)
      if (!row || !isShownIn(config, row, chat)) {
        return refused('not_found', 'No approval with this id in this chat.')
      }
      const home = options.homeOf(row.group, chat.jid)
      if (!mayDecide(config, row.group, person, home)) {
        const who = deciders(config, row.group, home)
        return refused('forbidden', `${nameOf(person)} may not decide this. Ask ${who}.`)
      }
      // The console can show all of it; a message on a platform cannot.
      const isPart = person.channel !== 'web' && row.action.payload.more > 0
      if (spoken.decision === 'always' && isPart) return refused('wrong_state', notAllShown(row))
      return settle(row, spoken, person)
    },
    decide(which, spoken) {
      const row = findApproval(store.approvals, which)
      if (!row) return refused('not_found', 'No approval with this id or code.')
      return settle(row, spoken, operator)
    },
    wholeOf({ seq }) {
      const held = requests.at(seq)?.held
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
      const { requestQueue } = options
      const held = (requestQueue?.open() ?? []).filter(({ kind }) => kind === 'held')
      for (const { seq, group } of held) {
        const row = store.approvals.approval(seq)
        if (!store.group(group)) requestQueue?.groupGone(group)
        // Its group was removed, and may be another by now.
        else if (row && row.status !== 'open') requestQueue?.answer(seq, takenBack)
      }
      const isHeld = new Set(held.map(({ seq }) => seq))
      for (const row of store.approvals.open()) {
        if (!isHeld.has(row.seq)) close(row, requests.outcomeOf(row.seq))
      }
    },
  }
}
