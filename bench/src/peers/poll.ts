import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, startChild } from '../children.ts'
import type { Contender } from '../contenders.ts'
import { asStamps } from '../stamps.ts'
import { relayContender } from './relay.ts'

const gap = 40

/** The directory listed once a second, as NanoClaw's host does. */
export const pollContender = async (base: string, producer: Child): Promise<Contender> => {
  const directory = join(base, 'poll')
  mkdirSync(directory)
  const consumer = startChild(new URL('./poll.process.ts', import.meta.url), 'poller')
  await consumer.call('begin', directory)
  return relayContender({
    name: 'one-second poller',
    // evenly over whole seconds, because where in the poller's second a file falls is all that matters here
    send: async count =>
      asStamps(await producer.call('trickle', { directories: [directory], count, gap, even: true })),
    take: async () => asStamps(await consumer.call('take')),
    end: consumer.end,
  })
}

/** Two whole seconds of samples. */
export const pollSamples = 2000 / gap
