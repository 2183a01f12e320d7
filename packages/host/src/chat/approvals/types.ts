import type { Group, Outcome, Refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Held } from '../../guard/guard.ts'
import type { HeldCommands } from '../../services/held.ts'
import type { RequestQueue } from '../../services/request-queue.ts'
import type { Positions } from '../../store/positions.ts'
import type { ApprovalRow, NewIncoming, RequestRow, Shown, Store } from '../../store/types.ts'
import type { Person } from './approvers.ts'
import type { ApprovalCard } from './card.ts'
import type { Decided } from './code.ts'

/**
 * Approvals: what agents may not do without a person, from the card in the chat to the decision. A card is
 *
 *   state       meaning                                                    next
 *   open        waits for a person; its request is held in the queue       any of the others
 *   allowed     a person let it happen; with "always" there is a rule,     -
 *               and exactly this happens without a card from now on; with
 *               "always tool" the tool does, whatever it is called with
 *   denied      a person said no                                           -
 *   expired     nobody decided in time; the request queue says when        -
 *   withdrawn   nobody wants it any longer                                 -
 *
 * What was decided is done, noted on its card, and made a rule, in one commit: nothing says "allowed" that did not
 * happen, and nothing happens that nobody is known to have allowed. What ends otherwise closes its card afterwards; a
 * crash in between leaves a card whose request is over, which `mend` closes. Nothing of it is read from a file.
 */
export interface Approvals {
  /** for the guard: a rule that lets it happen, under any of these digests */
  ruleFor(group: string, digests: readonly string[]): { by: `rule:${string}` } | undefined
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
