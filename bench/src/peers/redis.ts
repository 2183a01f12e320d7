import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import { type Method, openMailbox, receiverIn } from '../mailbox.ts'
import { findProgram, startServer } from './programs.ts'

/** Redis Streams with a sync before every answer: what `full` is measured against. */
export const redisMethod: Method = {
  name: 'Redis Streams',
  how: 'appendfsync always, a consumer group, acknowledged',
  async open(base, { ledger }) {
    const program = findProgram('redis-server')
    if (program === undefined) return { name: redisMethod.name, missing: 'redis-server is not installed' }
    const directory = join(base, 'redis')
    mkdirSync(directory)
    const file = new URL('./redis.process.ts', import.meta.url)
    return openMailbox({
      serve: () =>
        startServer(program, port => [
          ...['--bind', '127.0.0.1', '--port', String(port), '--dir', directory],
          ...['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
        ]),
      receive: port => receiverIn(startChild(file, 'Redis consumer'), { port, ledger }),
      writer: startChild(file, 'Redis publisher'),
      ownWriter: true,
      to: {},
      ledger,
    })
  },
}
