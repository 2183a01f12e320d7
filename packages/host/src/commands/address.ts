import { type Refused, refused } from '../base/outcome.ts'
import type { CommandContext } from './types.ts'

/** Nobody sees these, so an address with one of them passes for another. */
const invisible = /[\p{C}\p{Z}\p{DI}\u2800]/u

/**
 * The address of a chat as the host keeps it: as its group is registered, else in the one form (NFC) of all that look
 * the same. Those that groups have from before this rule go on.
 */
export function settledAddress(
  jid: string,
  { transaction }: Pick<CommandContext, 'transaction'>,
): string | Refused {
  const known = transaction.groupByJid(jid)
  if (known) return known.jid
  return invisible.test(jid)
    ? refused('invalid_field', 'jid: has characters that nobody sees. Write the address without them.')
    : jid.normalize('NFC')
}
