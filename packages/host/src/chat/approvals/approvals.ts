import { refused } from '../../base/outcome.ts'
import { digestOf, heldIn } from '../../guard/guard.ts'
import { deciders, isShownIn, mayDecide, nameOf, operator } from './approvers.ts'
import { createAsk, takenBack } from './ask.ts'
import { byId, cardOf, findApproval } from './card.ts'
import { createDecisions } from './decide.ts'
import { createHeldRequests } from './held-requests.ts'
import { knownChats } from './lookalikes.ts'
import { createSpoken } from './spoken.ts'
import { notAllShown, wholeOf } from './text.ts'
import type { Approvals, ApprovalsOptions } from './types.ts'

export function createApprovals(options: ApprovalsOptions): Approvals {
  const { store, config } = options
  const requests = createHeldRequests(options)
  const ask = createAsk(options, requests)
  const { settle, close } = createDecisions(options, requests, ask)

  return {
    ruleFor(group, digests) {
      const rule = digests.map(digest => store.approvals.ruleFor(group, digest)).find(Boolean)
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
