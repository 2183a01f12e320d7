import { defineService } from '@hatchway/host/service'
import { z } from 'zod'

/** A service that costs nothing, so that asking it is what is measured. */
export default defineService({
  name: 'bench',
  tools: {
    bench_echo: {
      description: 'Gives back what it gets.',
      input: z.object({ text: z.string() }),
      repeatable: true,
      labels: { public_source: 'no', secret_data: 'no', public_sink: 'no', dangerous_writes: 'no' },
      call: ({ text }) => ({ text }),
    },
  },
})
