import { createClient } from '@redis/client'
import { messageBody } from '../messages.ts'
import { idleGap, pause } from '../post.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asText } from '../shape.ts'
import { stampLog } from '../stamps.ts'

const key = 'messages'
const group = 'host'
const log = stampLog()

// RESP 2, because the client's types know the shape of these answers only there
const connected = (port: number) => createClient({ RESP: 2, socket: { host: '127.0.0.1', port } }).connect()
let client: Awaited<ReturnType<typeof connected>> | undefined

/** Reads as a worker that must not lose anything does: in a consumer group, acknowledged when done. A bare XREAD is no faster. */
const consume = async (redis: Awaited<ReturnType<typeof connected>>) => {
  for (;;) {
    const reply = await redis.xReadGroup(group, 'one', { key, id: '>' }, { BLOCK: 0 })
    for (const { messages } of reply ?? []) {
      for (const { id, message } of messages) {
        JSON.parse(asText(message.body))
        log.add(id, process.hrtime.bigint())
        await redis.xAck(key, group, id)
      }
    }
  }
}

serve({
  async consume(port) {
    client = await connected(asNumber(port))
    await client.xGroupCreate(key, group, '0', { MKSTREAM: true })
    // ends with the process: the error of a connection that was closed then reaches nobody
    consume(client).catch(error => {
      console.error(error)
      process.exit(1)
    })
  },
  async publish(argument) {
    const { port, count } = asFields(argument)
    client ??= await connected(asNumber(port))
    for (let index = 0; index < asNumber(count); index++) {
      await pause(idleGap)
      const body = messageBody(0, new Date())
      const at = process.hrtime.bigint()
      log.add(await client.xAdd(key, '*', { body }), at)
    }
    return log.take()
  },
  take: () => log.take(),
})
