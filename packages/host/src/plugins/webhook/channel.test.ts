import { createServer, type IncomingHttpHeaders } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../testing/src/channels/contract.ts'
import { openWebhook, webhookChat } from '../../../../testing/src/channels/webhook/platform.ts'
import { hostWith } from '../../chat/channels/testing.ts'
import type { Incoming } from '../../chat/channels/types.ts'
import type { MessageRow } from '../../store/types.ts'
import { createWebhookChannel } from './channel.ts'
import { webhookSchema } from './settings.ts'
import { checkSignature, sign } from './signature.ts'

channelContract({ kind: webhookChat, does: ['absence', 'outage', 'people'], open: openWebhook })

const secret = 'a secret that is long enough'
const at = 1_700_000_000_000
const seconds = String(at / 1000)

const message: MessageRow = {
  id: 7,
  group: 'shop',
  jid: 'webhook:shop',
  author: 'agent',
  kind: 'text',
  text: 'Hello — 👋',
  sender: 'Ann',
  speech: null,
  messageId: null,
  status: 'pending',
  attempts: 0,
  nextAttemptAt: 0,
  partsSent: 0,
  partsTotal: 0,
  error: null,
  createdAt: at,
  sentAt: null,
}

const whole = { number: 1, of: 1, key: 'hw7-1' }

const open = (options: { url?: string; secret?: string; now?: number } = {}) =>
  createWebhookChannel({
    settings: webhookSchema.parse(options.url === undefined ? {} : { url: options.url }),
    environment: { HATCHWAY_WEBHOOK_SECRET: options.secret ?? secret },
    now: () => options.now ?? at,
  })

/** A program at the other end, which answers with these one after another. */
async function receiver(...statuses: number[]) {
  const requests: { headers: IncomingHttpHeaders; body: Buffer }[] = []
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    requests.push({ headers: request.headers, body: Buffer.concat(parts) })
    const status = statuses.shift() ?? 204
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>(resolve => server.close(() => resolve())))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { requests, url: `http://127.0.0.1:${port}/hook` }
}

test('a message is posted with a signature that its receiver can check', async () => {
  const { requests, url } = await receiver()
  await open({ url }).send(message, whole)
  const [request] = requests
  expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({
    type: 'outgoing',
    id: '7',
    jid: 'webhook:shop',
    sender: 'Ann',
    text: 'Hello — 👋',
  })
  const body = request?.body ?? Buffer.alloc(0)
  const timestamp = String(request?.headers['x-hatchway-timestamp'])
  const signature = String(request?.headers['x-hatchway-signature'])
  expect(timestamp).toBe(seconds)
  expect(checkSignature({ secret, timestamp, signature, body, now: at })).toBeUndefined()
  expect(checkSignature({ secret: 'another', timestamp, signature, body, now: at })).toContain('does not fit')
})

test('files go along as long as they fit, and are named where they do not', async () => {
  const { requests, url } = await receiver()
  const files = new Map([
    ['a', Buffer.from([0, 255, 7])],
    ['large', Buffer.alloc(8_388_607)],
  ])
  const channel = createWebhookChannel({
    settings: webhookSchema.parse({ url }),
    environment: { HATCHWAY_WEBHOOK_SECRET: secret },
    readFile: async id => files.get(id),
    now: () => at,
  })
  const file = (id: string, bytes: number) => ({
    id,
    name: `${id}.bin`,
    type: 'application/octet-stream',
    bytes,
  })
  const attachments = [file('a', 3), file('large', 8_388_607), file('gone', 1)]
  await channel.send({ ...message, attachments }, whole)
  expect(JSON.parse(requests[0]?.body.toString() ?? '').attachments).toEqual([
    { name: 'a.bin', type: 'application/octet-stream', bytes: 3, content: 'AP8H' },
    { name: 'large.bin', type: 'application/octet-stream', bytes: 8_388_607, content: null },
    { name: 'gone.bin', type: 'application/octet-stream', bytes: 1, content: null },
  ])
  await channel.send(message, whole)
  expect(JSON.parse(requests[1]?.body.toString() ?? '')).not.toHaveProperty('attachments')
})

test.each([500, 404, 302, 100_0])('anything but 2xx is not delivered: %s', async status => {
  const { url } = status === 1000 ? { url: 'http://127.0.0.1:1/' } : await receiver(status)
  await expect(open({ url }).send(message, whole)).rejects.toThrow(
    status === 1000 ? 'cannot be reached' : `the webhook answered ${status}`,
  )
})

test('without an address, or with a secret that is none, it says so', async () => {
  await expect(open().send(message, whole)).rejects.toThrow('webhook.url is not configured')
  const channel = open({ url: 'http://127.0.0.1:1/', secret: 'short' })
  expect(channel.problem()).toContain('HATCHWAY_WEBHOOK_SECRET')
  await expect(channel.send(message, whole)).rejects.toThrow('HATCHWAY_WEBHOOK_SECRET')
  await channel.connect?.(hostWith())
  expect(await channel.accept(request({}))).toMatchObject({ ok: false, error: { code: 'unavailable' } })
})

const incoming = { type: 'incoming', id: 'e1', jid: 'webhook:shop', sender: 'till-3', text: 'one coffee' }

function request(change: {
  body?: unknown
  raw?: Uint8Array
  timestamp?: string
  secret?: string
  name?: string
}) {
  const body = change.raw ?? Buffer.from(JSON.stringify(change.body ?? incoming))
  const timestamp = change.timestamp ?? seconds
  return {
    name: change.name ?? 'shop',
    timestamp,
    signature: sign(change.secret ?? secret, timestamp, body),
    body,
  }
}

async function listening() {
  const channel = open()
  const heard: Incoming[] = []
  await channel.connect?.(
    hostWith({
      receive: async given => {
        const known = heard.some(({ externalId }) => externalId === given.externalId)
        if (!known) heard.push(given)
        return { ok: true, id: known ? undefined : heard.length, status: 'waiting' }
      },
    }),
  )
  return { channel, heard }
}

test('a signed message is received, once', async () => {
  const { channel, heard } = await listening()
  expect(await channel.accept(request({}))).toEqual({ ok: true, repeated: false })
  expect(await channel.accept(request({}))).toEqual({ ok: true, repeated: true })
  expect(heard).toEqual([
    {
      jid: 'webhook:shop',
      externalId: 'e1',
      sender: 'till-3',
      senderName: 'till-3',
      text: 'one coffee',
      at,
    },
  ])
})

test.each([
  ['another secret', request({ secret: 'a guess of the right length' }), 'forbidden'],
  ['no signature', { ...request({}), signature: undefined }, 'forbidden'],
  ['no time', { ...request({}), timestamp: undefined }, 'forbidden'],
  [
    'a changed body',
    { ...request({}), body: Buffer.from(JSON.stringify({ ...incoming, text: 'x' })) },
    'forbidden',
  ],
  ['a changed time', { ...request({}), timestamp: String(at / 1000 + 1) }, 'forbidden'],
  ['an old time', request({ timestamp: String(at / 1000 - 301) }), 'forbidden'],
  ['a time to come', request({ timestamp: String(at / 1000 + 301) }), 'forbidden'],
  ['a time that is none', request({ timestamp: '1e9' }), 'forbidden'],
  ['another chat’s message', request({ name: 'other' }), 'invalid_field'],
  ['what we sent ourselves', request({ body: { ...incoming, type: 'outgoing' } }), 'invalid_field'],
  ['no JSON', request({ raw: Buffer.from('{') }), 'invalid_field'],
  ['no UTF-8', request({ raw: Buffer.from([0x22, 0xff, 0x22]) }), 'invalid_field'],
  ['no id', request({ body: { ...incoming, id: undefined } }), 'invalid_field'],
])('%s is refused', async (_, given, code) => {
  const { channel, heard } = await listening()
  expect(await channel.accept(given)).toMatchObject({ ok: false, error: { code } })
  expect(heard).toEqual([])
})
