import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { fields, text } from './events.ts'

/**
 * Whoever runs the homeserver cannot write what is encrypted, but can give out the same again as another event. Each message
 * of a session has a number within what is encrypted, which is taken once: those that were are kept as ranges, by session.
 */
export interface Replays {
  /** `hear` is called unless the message was heard before, which is noted once it is done */
  once(raw: object, hear: () => Promise<void>): Promise<void>
}

const rangesSchema = z.array(z.tuple([z.int(), z.int()]))
type Ranges = z.output<typeof rangesSchema>
/** of somebody who leaves out numbers on purpose; what is between the oldest counts as heard then */
const mostRanges = 500

export function createReplays(memory: Pick<ChannelHost, 'recall' | 'remember'>): Replays {
  return {
    async once(raw, hear) {
      const { session_id, ciphertext } = fields(fields(raw).content)
      const key = `heard:${text(session_id)}`
      const number = numberOf(text(ciphertext) ?? '')
      const heard = () => rangesSchema.parse(JSON.parse(memory.recall(key) ?? '[]'))
      if (heard().some(([first, last]) => first <= number && number <= last)) return
      await hear()
      memory.remember(key, JSON.stringify(withNumber(heard(), number)))
    },
  }
}

/** A version, then the number as a field of a protocol buffer, which is left out where it is 0. */
function numberOf(ciphertext: string): number {
  const [, tag, ...rest] = Buffer.from(ciphertext.slice(0, 24), 'base64')
  if (tag !== 0x08) return 0
  const end = rest.findIndex(byte => byte < 0x80)
  return rest.slice(0, end + 1).reduceRight((sum, byte) => sum * 0x80 + (byte & 0x7f), 0)
}

function withNumber(ranges: Ranges, number: number): Ranges {
  const joined: Ranges = []
  for (const [first, last] of [...ranges, [number, number] as const].toSorted((a, b) => a[0] - b[0])) {
    const before = joined.at(-1)
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else joined.push([first, last])
  }
  const [oldest, next, ...others] = joined
  return joined.length > mostRanges && oldest && next ? [[oldest[0], next[1]], ...others] : joined
}
