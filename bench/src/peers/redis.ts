import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import type { Absent, Contender } from '../contenders.ts'
import { asStamps } from '../stamps.ts'
import { findProgram, startServer } from './programs.ts'
import { relayContender } from './relay.ts'

const name = 'Redis Streams'

/** Redis Streams with a sync before every answer: what `full` is measured against. */
export const redisContender = async (base: string): Promise<Contender | Absent> => {
  const program = findProgram('redis-server')
  if (program === undefined) return { name, missing: 'redis-server is not installed' }
  const directory = join(base, 'redis')
  mkdirSync(directory)
  const server = await startServer(program, port => [
    ...['--bind', '127.0.0.1', '--port', String(port), '--dir', directory],
    ...['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
  ])
  const file = new URL('./redis.process.ts', import.meta.url)
  const consumer = startChild(file, 'Redis consumer')
  const publisher = startChild(file, 'Redis publisher')
  await consumer.call('consume', server.port)
  return relayContender({
    name,
    send: async count => asStamps(await publisher.call('publish', { port: server.port, count })),
    take: async () => asStamps(await consumer.call('take')),
    async end() {
      await publisher.end()
      await consumer.end()
      await server.end()
    },
  })
}
