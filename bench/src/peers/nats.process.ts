import { AckPolicy, jetstream, jetstreamManager, StorageType } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { messageBody } from '../messages.ts'
import { idleGap, pause } from '../post.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber } from '../shape.ts'
import { stampLog } from '../stamps.ts'

const stream = 'messages'
const durable = 'host'
const log = stampLog()

const connected = (port: number) => connect({ servers: `127.0.0.1:${port}` })
let connection: NatsConnection | undefined

serve({
  async consume(port) {
    connection = await connected(asNumber(port))
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: stream, subjects: [stream], storage: StorageType.File })
    await manager.consumers.add(stream, { durable_name: durable, ack_policy: AckPolicy.Explicit })
    const consumer = await jetstream(connection).consumers.get(stream, durable)
    await consumer.consume({
      callback(message) {
        message.json()
        log.add(String(message.seq), process.hrtime.bigint())
        message.ack()
      },
    })
  },
  async publish(argument) {
    const { port, count } = asFields(argument)
    connection ??= await connected(asNumber(port))
    const client = jetstream(connection)
    for (let index = 0; index < asNumber(count); index++) {
      await pause(idleGap)
      const body = messageBody(0, new Date())
      const at = process.hrtime.bigint()
      const { seq } = await client.publish(stream, body)
      log.add(String(seq), at)
    }
    return log.take()
  },
  take: () => log.take(),
})
