import { z } from 'zod'
import { whole } from '../../config/values.ts'

/** What agents may keep for later with `save_memory`. */
export const memorySchema = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe('Whether agents can save memories and recall them, each group its own.'),
  perGroup: whole(1, 10_000_000)
    .default(100_000)
    .describe('Memories of one group. Over it, a new one is refused with `quota_exceeded`.'),
  contentBytes: whole(1, 262_144)
    .default(16_384)
    .describe('The longest content of one memory. Over it, it is refused with `invalid_field`.'),
  groupBytes: whole(1, Number.MAX_SAFE_INTEGER)
    .default(268_435_456)
    .describe(
      'Keys and contents of one group together. Over it, a new memory is refused with `quota_exceeded`. The disk needs about three times that, for the index.',
    ),
})
