import { randomInt } from 'node:crypto'
import { defineService } from 'hatchway/service'
import { z } from 'zod'

/** Dice that an agent cannot load: it asks, and the host throws them. */
export default defineService({
  name: 'dice',
  tools: {
    roll_dice: {
      description: 'Throws dice and tells what they show.',
      input: z.object({ dice: z.int().min(1).max(20).default(2), sides: z.int().min(2).max(100).default(6) }),
      labels: { public_source: 'no', secret_data: 'no', public_sink: 'no', dangerous_writes: 'no' },
      output: z.object({ shown: z.array(z.int()), sum: z.int() }),
      call({ dice, sides }, { group, log }) {
        const shown = Array.from({ length: dice }, () => randomInt(1, sides + 1))
        log.info({ group: group.folder, shown }, 'dice were thrown')
        return { shown, sum: shown.reduce((sum, one) => sum + one, 0) }
      },
    },
  },
})
