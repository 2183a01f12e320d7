import { type Group, type Refusal, refusal } from '@hatchway/protocol'
import { refused } from '../../base/outcome.ts'
import { isStorageFailure } from '../../base/storage-failure.ts'
import { quoted } from '../../base/visible-text.ts'
import { zoneOf } from '../../config.ts'
import { digestOf, type Held } from '../../guard/guard.ts'
import { hostMessage } from '../../store/text-message.ts'
import type { ApprovalRow, RequestRow } from '../../store/types.ts'
import { chatFor, deciders } from './approvers.ts'
import { newCode } from './code.ts'
import type { HeldRequests } from './held-requests.ts'
import { knownChats } from './lookalikes.ts'
import { shownAction, shownReason, textOfApproval } from './text.ts'
import type { Approvals, ApprovalsOptions } from './types.ts'

/** Of the requests that a group may have open, one in so many may wait for a person. */
const openShare = 10
/** So many may be asked and taken back in a while before nobody is asked for the group any more. */
const takenBackCards = 10
const takenBackMs = 600_000

export const takenBack = refused('cancelled', 'The request was taken back: nobody wants it any longer.')

/** Puts a held command to the people of its chat: a card, its message and an entry in the log, in one commit. */
export function createAsk(options: ApprovalsOptions, requests: HeldRequests): Approvals['ask'] {
  const { store, config, positions, log, now } = options

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

  const open = (request: RequestRow, group: Group, held: Held, why: string, hasSecrets: boolean) => {
    const { seq, expiresAt, reply } = request
    const row: ApprovalRow = {
      seq,
      group: group.folder,
      jid: chatFor(config, group),
      messageId: positions.next(),
      code: newCode(),
      action: shownAction(held, knownChats(store.groups()), !hasSecrets),
      taint: held.taint,
      why: shownReason(why),
      status: 'open',
      decidedBy: null,
      words: null,
      rule: null,
      createdAt: now(),
      expiresAt,
      closedAt: null,
    }
    const home = options.homeOf(group.folder, row.jid)
    const about = { deciders: deciders(config, group.folder, home), timezone: zoneOf(config, group.folder) }
    const whose = row.jid === group.jid ? '' : `For the group ${quoted(group.folder)}. `
    const text = `${whose}${textOfApproval(row, about)}`
    store.transaction(transaction => {
      transaction.insertMessage({
        ...hostMessage(row.messageId, { folder: group.folder, jid: row.jid }, text, row.createdAt),
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
        requestId: reply?.id ?? null,
      })
    })
    options.said()
  }

  return (request, held, why, hasSecrets = false) => {
    const { seq } = request
    const refuse = (error: Refusal) => void options.heldCommands.refuse(seq, error)
    try {
      const group = store.group(request.group)
      // After a restart the guard looks at it again; who was asked has been asked.
      if (!group || store.approvals.approval(seq)) return
      if (options.requestQueue?.isAbandoned(seq)) return refuse(takenBack.error)
      const cards = store.approvals.open().filter(row => row.group === group.folder)
      const digest = digestOf(held.action)
      // Whoever decides about one card decides about the others, or is asked about them in turn.
      if (cards.some(row => requests.digestAt(row.seq) === digest)) return
      const tooMany = flooding(group.folder, cards.length)
      if (tooMany) return refuse(tooMany)
      open(request, group, held, why, hasSecrets)
    } catch (error) {
      // The guard asks again, once there is room.
      if (isStorageFailure(error)) throw error
      // Nobody is asked, so nobody allows it: the request queue lets it expire.
      log.error({ err: error, request: seq }, 'a person could not be asked')
    }
  }
}
