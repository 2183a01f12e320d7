import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import { type Method, openMailbox, receiverIn } from '../mailbox.ts'
import { findProgram, startServer } from './programs.ts'

/** JetStream on file storage, which does not sync each message: what `process` is measured against. */
export const natsMethod: Method = {
  name: 'NATS JetStream',
  how: 'file storage (not synced), a durable consumer, acknowledged',
  async open(base, { ledger }) {
    const program = findProgram('nats-server')
    if (program === undefined) return { name: natsMethod.name, missing: 'nats-server is not installed' }
    const directory = join(base, 'nats')
    mkdirSync(directory)
    const file = new URL('./nats.process.ts', import.meta.url)
    return openMailbox({
      serve: () =>
        startServer(program, port => [
          ...['-a', '127.0.0.1', '-p', String(port)],
          ...['-js', '-sd', directory],
        ]),
      receive: port => receiverIn(startChild(file, 'NATS consumer'), { port, ledger }),
      writer: startChild(file, 'NATS publisher'),
      ownWriter: true,
      to: {},
      ledger,
    })
  },
}
