import { AckPolicy, jetstream, jetstreamManager, StorageType } from '@nats-io/jetstream'
import { connect, type NatsConnection, nanos } from '@nats-io/transport-node'
import { messageBody } from '../messages.ts'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber } from '../shape.ts'
import { writing } from '../writing.ts'

const stream = 'messages'
const durable = 'host'
const atOnce = 200

const connected = (port: number) => connect({ servers: `127.0.0.1:${port}` })
const { open, handled, methods } = receiving()
let writer: NatsConnection | undefined

serve({
  async begin(argument) {
    const fields = asFields(argument)
    open(fields)
    const connection = await connected(asNumber(fields.port))
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: stream, subjects: [stream], storage: StorageType.File })
    await manager.consumers.add(stream, {
      durable_name: durable,
      ack_policy: AckPolicy.Explicit,
      // what a killed consumer had is given out again after this: waited for where there is a ledger
      ...(fields.ledger === undefined ? {} : { ack_wait: nanos(2000) }),
    })
    const consumer = await jetstream(connection).consumers.get(stream, durable)
    await consumer.consume({
      callback(message) {
        message.json()
        handled(String(message.seq))
        message.ack()
      },
    })
  },
  ...methods,

  ...writing(async to => {
    writer ??= await connected(asNumber(to.port))
    const client = jetstream(writer)
    return async () => {
      const body = messageBody(0, new Date())
      const at = process.hrtime.bigint()
      const { seq } = await client.publish(stream, body)
      return { name: String(seq), at }
    }
  }, atOnce),
})
