import type { Group, Outcome, ReplyAddress } from '@hatchway/protocol'
import { refused } from '../base/outcome.ts'
import type { GuardRules, Held } from '../guard/guard.ts'
import type { RequestRow } from '../store/types.ts'
import { tooManyRequests } from './requests.ts'
import type { CommandContext } from './types.ts'

/** Pynchy's shell gate gives up after 300 s and then runs the command: it has its no before that. */
const gateWaitsMs = 270_000
const patienceMs = (reply: ReplyAddress | null): number =>
  reply?.shape === 'decision' ? gateWaitsMs : Number.POSITIVE_INFINITY

/** Stores a command that somebody has to look at first, or to decide; null: the answer follows. */
export function hold(held: Held, group: Group, rules: GuardRules, context: CommandContext): Outcome | null {
  const { transaction, now, request } = context
  const tooMany = tooManyRequests(group.folder, context)
  if (tooMany) return tooMany
  if (!request)
    return refused(
      'denied',
      'This needs a review, which only a running daemon can do. Start the daemon and try again.',
    )
  const createdAt = now.getTime()
  const row: RequestRow = {
    seq: request.seq,
    reply: request.reply,
    group: group.folder,
    kind: 'held',
    tool: held.action.name,
    input: { ...held },
    status: 'waiting',
    outcome: null,
    createdAt,
    expiresAt: createdAt + Math.min(rules.approvalMs, patienceMs(request.reply)),
  }
  transaction.insertRequest(row)
  context.effect({ kind: 'request_stored', request: row })
  return null
}
