import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import type { Absent, Contender } from '../contenders.ts'
import { asStamps } from '../stamps.ts'
import { findProgram, startServer } from './programs.ts'
import { relayContender } from './relay.ts'

const name = 'NATS JetStream'

/** JetStream on file storage, which does not sync each message: what `process` is measured against. */
export const natsContender = async (base: string): Promise<Contender | Absent> => {
  const program = findProgram('nats-server')
  if (program === undefined) return { name, missing: 'nats-server is not installed' }
  const directory = join(base, 'nats')
  mkdirSync(directory)
  const server = await startServer(program, port => [
    ...['-a', '127.0.0.1', '-p', String(port)],
    ...['-js', '-sd', directory],
  ])
  const file = new URL('./nats.process.ts', import.meta.url)
  const consumer = startChild(file, 'NATS consumer')
  const publisher = startChild(file, 'NATS publisher')
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
