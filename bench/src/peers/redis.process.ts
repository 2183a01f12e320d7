import { createClient } from '@redis/client'
import { messageBody } from '../messages.ts'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asText } from '../shape.ts'
import { writing } from '../writing.ts'

const key = 'messages'
const group = 'host'
const atOnce = 200

// RESP 2, because the client's types know the shape of these answers only there
const connected = (port: number) => createClient({ RESP: 2, socket: { host: '127.0.0.1', port } }).connect()
type Client = Awaited<ReturnType<typeof connected>>

const { open, handled, methods } = receiving()
let writer: Client | undefined

/** Parses what there is after `id`, acknowledges it, and says how many it was. */
const take = async (redis: Client, id: string): Promise<number> => {
  const reply = await redis.xReadGroup(group, 'one', { key, id }, { BLOCK: 0, COUNT: atOnce })
  const messages = (reply ?? []).flatMap(each => each.messages)
  for (const { id: name, message } of messages) {
    JSON.parse(asText(message.body))
    handled(name)
  }
  const names = messages.map(message => message.id)
  if (names.length > 0) await redis.xAck(key, group, names)
  return names.length
}

/** Reads as a worker that must not lose anything does: in a consumer group, acknowledged when done. A bare XREAD is no faster. */
const consume = async (redis: Client) => {
  // first what it was given before it was killed, and has not acknowledged
  while ((await take(redis, '0')) > 0);
  for (;;) await take(redis, '>')
}

serve({
  async begin(argument) {
    const fields = asFields(argument)
    open(fields)
    const redis = await connected(asNumber(fields.port))
    await redis.xGroupCreate(key, group, '0', { MKSTREAM: true }).catch((error: unknown) => {
      if (!String(error).includes('BUSYGROUP')) throw error
    })
    // ends with the process: the error of a connection that was closed then reaches nobody
    consume(redis).catch(error => {
      console.error(error)
      process.exit(1)
    })
  },
  ...methods,

  ...writing(async to => {
    const redis = writer ?? (await connected(asNumber(to.port)))
    // its server is killed on purpose, after it has written all it has to write
    writer = redis.on('error', error => console.error(error))
    return async () => {
      const body = messageBody(0, new Date())
      const at = process.hrtime.bigint()
      return { name: await redis.xAdd(key, '*', { body }), at }
    }
  }, atOnce),
})
