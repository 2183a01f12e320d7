import { refusal } from '@hatchway/protocol'
import { hostMessage } from '../../store/text-message.ts'
import type { NewIncoming } from '../../store/types.ts'
import { deciders, isShownIn, mayDecide, nameOf, showsOthers } from './approvers.ts'
import { createAttempts } from './attempts.ts'
import { decisionIn } from './code.ts'
import type { Decisions } from './decide.ts'
import { notAllShown } from './text.ts'
import type { Approvals, ApprovalsOptions } from './types.ts'

const wrongCodesPerMinute = 5
const strangersPerMinute = 5

const tooMany = refusal('quota_exceeded', 'That was wrong too often. Wait a minute.')

/** Decisions that are said in a chat with the code of their card, by somebody who may decide or not. */
export function createSpoken(options: ApprovalsOptions, settle: Decisions['settle']): Approvals['meantBy'] {
  const { store, config, positions, log, now } = options
  const wrongCodes = createAttempts({ perMinute: wrongCodesPerMinute, now })
  const strangers = createAttempts({ perMinute: strangersPerMinute, now })

  /** The answer to somebody who cannot decide this, in the chat where they tried to. */
  const reply = (said: NewIncoming, text: string): number | undefined => {
    const id = store.transaction(transaction => {
      const id = transaction.hear(said)
      if (id !== undefined) {
        const chat = { folder: said.group, jid: said.jid }
        transaction.insertMessage(hostMessage(positions.next(), chat, text, now()))
      }
      return id
    })
    options.said()
    return id
  }

  return (group, person, text) => {
    const meant = decisionIn(text)
    if (!meant) return undefined
    const { jid } = group
    // Where cards of other groups are shown, theirs may decide; elsewhere a stranger's code is not even looked up.
    const shown = showsOthers(config, jid) ? store.approvals.byCode(jid, meant.code) : undefined
    const folder = shown && isShownIn(config, shown, group) ? shown.group : group.folder
    const home = options.homeOf(folder, jid)
    if (!mayDecide(config, folder, person, home)) {
      if (strangers.areTooMany(jid)) return tooMany
      return said => {
        strangers.count(jid)
        return reply(said, `${nameOf(person)} may not decide this. Ask ${deciders(config, folder, home)}.`)
      }
    }
    if (wrongCodes.areTooMany(jid)) return tooMany
    return said => {
      const row = store.approvals.byCode(jid, meant.code)
      if (row?.group !== folder) {
        wrongCodes.count(jid)
        log.warn({ group: folder, jid, sender: person.sender }, 'a wrong code was said')
        return reply(said, 'No open approval with this code in this chat.')
      }
      if (meant.decision === 'always' && row.action.payload.more > 0) {
        return reply(said, notAllShown(row))
      }
      const settled = settle(row, meant, person, said)
      return settled.ok ? settled.id : reply(said, settled.error.message)
    }
  }
}
