import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineService, ServiceRefusal } from '@hatchway/host/service'
import { z } from 'zod'

/** Services as an operator adds them, for requests of containers: what was asked is noted where the command looks. */
const note = (line: string) => appendFileSync(join(process.env.CONFORMANCE_NOTES ?? '', 'asked'), `${line}\n`)
const labels = { public_source: 'no', secret_data: 'no', public_sink: 'no', dangerous_writes: 'no' } as const
const anything = z.looseObject({})

export default defineService({
  name: 'conformance',
  tools: {
    count: {
      description: 'Counts.',
      labels,
      input: z.looseObject({ to: z.int().max(10), slowly: z.boolean().optional() }),
      repeatable: true,
      async call({ to, slowly }, { progress }) {
        for (let at = 1; at <= to && slowly; at++) {
          progress({ progress: at, total: to, message: `at ${at}` })
          await sleep(1500)
        }
        note('count')
        return { counted: to }
      },
    },
    tally: {
      description: 'Tells how often it was asked.',
      labels,
      input: anything,
      call() {
        note('tally')
        return { asked: Date.now() }
      },
    },
    break: {
      description: 'Fails.',
      labels,
      input: anything,
      call: () => Promise.reject(new Error('it broke')),
    },
    wait: {
      description: 'Never comes to an end by itself.',
      labels,
      input: anything,
      timeoutMs: 60_000,
      async call(_, { signal }) {
        await sleep(60_000, undefined, { signal })
        return {}
      },
    },
    x_post: {
      description: 'Posts something.',
      labels,
      input: z.looseObject({ content: z.string().min(1) }),
      call({ content }) {
        note(`x_post ${content}`)
        return { message: 'It is posted.', url: 'https://example.org/1' }
      },
    },
    x_like: {
      description: 'Likes something.',
      labels,
      input: anything,
      call: () => Promise.reject(new ServiceRefusal('not_found', 'There is no such post.')),
    },
  },
})
