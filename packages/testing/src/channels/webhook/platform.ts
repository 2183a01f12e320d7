import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import type { Channel } from '../../../../host/src/chat/channels/types.ts'
import { createWebhookChannel, type WebhookChannel } from '../../../../host/src/plugins/webhook/channel.ts'
import { webhookSchema } from '../../../../host/src/plugins/webhook/settings.ts'
import {
  checkSignature,
  sign,
  signatureHeader,
  timestampHeader,
} from '../../../../host/src/plugins/webhook/signature.ts'
import type { TestedKind } from '../host.ts'
import type { Person, Platform, Shown } from '../platform.ts'

const secret = 'a secret that is long enough'

export const webhookChat: TestedKind = {
  name: 'webhook',
  title: 'The webhook',
  settings: webhookSchema,
  load: async () => ({
    check: async () => '',
    open: ({ settings, readFile, now }) =>
      createWebhookChannel({
        settings: webhookSchema.parse(settings),
        environment: { HATCHWAY_WEBHOOK_SECRET: secret },
        readFile,
        now,
      }),
  }),
}

const isWebhook = (channel: Channel): channel is WebhookChannel => 'accept' in channel
const outgoing = z.object({ id: z.string(), jid: z.string(), kind: z.string(), text: z.string() })

/** A program that shows what it is sent, once for each id, and repeats what it says until a host has taken or refused it. */
export async function openWebhook(): Promise<Platform> {
  const shown = new Map<string, Shown[]>()
  const unsaid: { name: string; body: string }[] = []
  const said: { name: string; body: string }[] = []
  let channel: WebhookChannel | undefined
  let refusals = 0
  let server: Server | undefined
  let port = 0

  const show = (jid: string, one: Shown) => {
    const all = shown.get(jid) ?? []
    if (!all.some(({ id }) => id === one.id)) shown.set(jid, [...all, one])
  }
  const offer = async ({ name, body }: { name: string; body: string }): Promise<boolean> => {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = sign(secret, timestamp, body)
    const taken = await channel?.accept({ name, timestamp, signature, body: Buffer.from(body) })
    return taken !== undefined && (taken.ok || taken.error.code !== 'unavailable')
  }
  let offering = Promise.resolve()
  /** One after another, in order. */
  const offerAll = () => {
    offering = offering.then(async () => {
      for (let [next] = unsaid; next && (await offer(next)); [next] = unsaid) {
        unsaid.shift()
        said.push(next)
      }
    })
    return offering
  }
  const listen = async () => {
    server = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray())
      const wrong = checkSignature({
        ...{ secret, body, now: Date.now() },
        timestamp: z.string().parse(request.headers[timestampHeader]),
        signature: z.string().parse(request.headers[signatureHeader]),
      })
      if (wrong !== undefined || refusals > 0) {
        refusals = Math.max(0, refusals - 1)
        response.writeHead(wrong === undefined ? 503 : 403).end()
        return
      }
      const { id, jid, kind, text } = outgoing.parse(JSON.parse(body.toString()))
      if (kind !== 'reaction') show(jid, { id, isOurs: true, text })
      response.writeHead(204).end()
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    server.listen(port, '127.0.0.1', resolve)
    await promise
    port = (server.address() as AddressInfo).port
  }
  const unlisten = async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (!server) return
    server.close(() => resolve())
    server.closeAllConnections()
    server = undefined
    await promise
  }
  await listen()

  return {
    settings: { url: `http://127.0.0.1:${port}/hook` },
    direct: 'webhook:till',
    room: 'webhook:shop',
    ann: { id: 'till-3', name: 'The till' } satisfies Person,
    stranger: { id: 'elsewhere', name: 'Mallory' },
    dropsRepeats: true,
    meet({ channel: given }) {
      channel = isWebhook(given) ? given : undefined
      void offerAll()
    },
    async say(by, jid, text, { mention } = {}) {
      const id = randomUUID()
      const content = mention ? `@Hatch ${text}` : text
      const body = { type: 'incoming', id, jid, sender: by.id, sender_name: by.name, text: content }
      unsaid.push({ name: jid.replace('webhook:', ''), body: JSON.stringify(body) })
      await offerAll()
      show(jid, { id, isOurs: false, text: content })
      return id
    },
    shown: async jid => shown.get(jid) ?? [],
    refuse(times) {
      refusals = times
    },
    async repeat() {
      for (const one of said) await offer(one)
    },
    /** a program that does not know the secret */
    async forge(text) {
      const timestamp = String(Math.floor(Date.now() / 1000))
      const said = { type: 'incoming', id: randomUUID(), jid: 'webhook:shop', sender: 'till-3', text }
      const body = JSON.stringify(said)
      const signature = sign(`${secret}?`, timestamp, body)
      await channel?.accept({ name: 'shop', timestamp, signature, body: Buffer.from(body) })
    },
    down: unlisten,
    up: listen,
    close: unlisten,
  }
}
