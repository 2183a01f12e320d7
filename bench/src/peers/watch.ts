import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, startChild } from '../children.ts'
import type { Contender } from '../contenders.ts'
import { idleGap } from '../post.ts'
import { asStamps } from '../stamps.ts'
import { relayContender } from './relay.ts'

/** Bare `fs.watch`: the fastest that files can be in Node. */
export const watchContender = async (base: string, producer: Child): Promise<Contender> => {
  const directory = join(base, 'watch')
  mkdirSync(directory)
  const consumer = startChild(new URL('./watch.process.ts', import.meta.url), 'fs.watch')
  await consumer.call('begin', directory)
  return relayContender({
    name: 'bare fs.watch',
    send: async count =>
      asStamps(await producer.call('trickle', { directories: [directory], count, gap: idleGap })),
    take: async () => asStamps(await consumer.call('take')),
    end: consumer.end,
  })
}
