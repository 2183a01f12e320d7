import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineService, ServiceRefusal } from '@hatchway/host/service'
import { z } from 'zod'

/**
 * A service whose tools do what services must not do. Each call writes a line to `asked`; those that wait go on once
 * a file of the name they were given is there, so that nothing depends on time.
 */
const directory = process.env.HATCHWAY_RIG_DIR ?? ''
const note = (line: string) => appendFileSync(join(directory, 'asked'), `${line}\n`)
const opened = async (name: string, signal?: AbortSignal) => {
  while (!existsSync(join(directory, name)) && signal?.aborted !== true) await sleep(5)
}
const gate = z.object({ gate: z.string() })
/** The guard has nothing to do with it. */
const labels = { public_source: 'no', secret_data: 'no', public_sink: 'no', dangerous_writes: 'no' } as const

export default defineService({
  name: 'rig',
  tools: {
    echo: {
      description: 'Gives back what it gets, and for whom.',
      labels,
      input: z.object({ text: z.string().max(100) }),
      repeatable: true,
      call: ({ text }, { group, requestId }) => ({ text, group, request: requestId }),
    },
    for_main: {
      description: 'Is for the main group.',
      labels,
      input: z.object({}),
      groups: 'main',
      call: () => ({}),
    },
    wait: {
      description: 'Waits for a file; can be asked again.',
      labels,
      input: gate,
      repeatable: true,
      timeoutMs: 60_000,
      async call({ gate }, { requestId, signal, progress }) {
        note(`wait ${requestId}`)
        progress({ progress: 1, total: 3, message: 'begun' })
        await opened(gate, signal)
        signal.throwIfAborted()
        return { waited: gate }
      },
    },
    wait_once: {
      description: 'Waits for a file; must not be asked twice.',
      labels,
      input: gate,
      timeoutMs: 60_000,
      async call({ gate }, { requestId, signal }) {
        note(`wait_once ${requestId}`)
        await opened(gate, signal)
        signal.throwIfAborted()
        return { waited: gate }
      },
    },
    never: {
      description: 'Hears nothing and never ends.',
      labels,
      input: z.object({}),
      timeoutMs: 300,
      call: () => new Promise<object>(() => {}),
    },
    late: {
      description: 'Answers when its time is over.',
      labels,
      input: gate,
      timeoutMs: 300,
      async call({ gate }) {
        await opened(gate)
        note('late has answered')
        return { late: true }
      },
    },
    fail: {
      description: 'Throws.',
      labels,
      input: z.object({ how: z.enum(['error', 'text', 'at once', 'refusal']) }),
      call({ how }) {
        if (how === 'at once') throw new Error('it broke at once')
        if (how === 'refusal') throw new ServiceRefusal('not_found', 'There is no such thing.')
        return Promise.reject(how === 'text' ? 'only words' : new Error('it broke'))
      },
    },
    answer: {
      description: 'Answers what cannot be passed on.',
      labels,
      input: z.object({ what: z.enum(['huge', 'nothing', 'a time', 'list', 'circle', 'deep', 'bigint']) }),
      call({ what }) {
        const circle: Record<string, unknown> = {}
        circle.circle = circle
        let deep: object = {}
        for (let i = 0; i < 1000; i++) deep = { deep }
        const answers: Record<typeof what, () => object> = {
          huge: () => ({ text: 'x'.repeat(100_000_000) }),
          nothing: () => JSON.parse('null'),
          'a time': () => new Date(0),
          list: () => [1, 2],
          circle: () => circle,
          deep: () => deep,
          bigint: () => ({ number: 1n }),
        }
        return answers[what]()
      },
    },
    large: {
      description: 'Answers much, but not too much.',
      labels,
      input: z.object({ bytes: z.int() }),
      call: ({ bytes }) => ({ text: 'y'.repeat(bytes) }),
    },
  },
})
