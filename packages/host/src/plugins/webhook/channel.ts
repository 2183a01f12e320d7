import { type Refusal, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import type { Channel, ChannelHost } from '../../chat/channels/types.ts'
import type { Attachment } from '../../store/types.ts'
import type { WebhookSettings } from './settings.ts'
import { checkSignature, sign, signatureHeader, timestampHeader } from './signature.ts'

/**
 * Chats `webhook:{name}`, for programs. Out: each message is posted to `webhook.url`; any 2xx means delivered. In: POST
 * /webhook/{name}. Both ways carry the same signature, and a body that says which way it goes and which chat it is of,
 * so that nothing we sent can be sent back to us, nor to another chat.
 */
export interface WebhookChannel extends Channel {
  problem(): string | undefined
  accept(request: {
    name: string
    timestamp: string | undefined
    signature: string | undefined
    body: Uint8Array
  }): Promise<{ ok: true; repeated: boolean } | { ok: false; error: Refusal }>
}

const incomingBody = z.object({
  type: z.literal('incoming'),
  id: z.string().min(1).max(256),
  jid: z.string(),
  sender: z.string().min(1).max(256),
  sender_name: z.string().min(1).max(256).optional(),
  text: z.string(),
})

const prefix = 'webhook:'
const timeoutMs = 10_000
const shortestSecret = 16
/** of all files of one message */
const filesBytes = 8_388_608

export function createWebhookChannel(options: {
  settings: WebhookSettings
  environment: Readonly<NodeJS.ProcessEnv>
  /** what is in a file that goes along; undefined: it is not kept */
  readFile?(id: string): Promise<Buffer | undefined>
  now(): number
}): WebhookChannel {
  const { now, readFile = async () => undefined } = options
  const { url, secretVariable } = options.settings
  const secret = options.environment[secretVariable] ?? ''
  const problem =
    secret.length < shortestSecret
      ? `The variable ${secretVariable} must hold a secret of at least ${shortestSecret} characters.`
      : undefined
  let host: ChannelHost | undefined

  return {
    name: 'webhook',
    messageLimit: Number.POSITIVE_INFINITY,
    showsSender: true,
    problem: () => problem,
    reaches: jid => jid.startsWith(prefix),
    async connect(given) {
      host = given
    },
    async disconnect() {
      host = undefined
    },
    async send(message, part) {
      if (problem !== undefined) throw new Error(problem)
      if (url === undefined) throw new Error('webhook.url is not configured.')
      const body = JSON.stringify({
        type: 'outgoing',
        id: part.of === 1 ? String(message.id) : `${message.id}-${part.number}`,
        jid: message.jid,
        kind: message.kind,
        sender: message.sender,
        text: message.text,
        message_id: message.messageId,
        speech: message.speech,
        reply_to: message.replyTo ?? null,
        created_at: new Date(message.createdAt).toISOString(),
        ...(message.attachments && { attachments: await filesOf(message.attachments, readFile) }),
      })
      const timestamp = String(Math.floor(now() / 1000))
      const response = await post(url, body, {
        'content-type': 'application/json',
        [timestampHeader]: timestamp,
        [signatureHeader]: sign(secret, timestamp, body),
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the webhook answered ${response.status}`)
    },
    async accept({ name, timestamp, signature, body }) {
      const refuse = (code: Refusal['code'], message: string) =>
        ({ ok: false, error: refusal(code, message) }) as const
      if (problem !== undefined || !host) {
        return refuse('unavailable', 'This host takes no messages from webhooks.')
      }
      const wrong = checkSignature({ secret, timestamp, signature, body, now: now() })
      if (wrong !== undefined) return refuse('forbidden', wrong)
      const parsed = incomingBody.safeParse(parse(body))
      if (!parsed.success) {
        const [issue] = parsed.error.issues
        return refuse('invalid_field', `${issue?.path.join('.') || 'body'}: ${issue?.message}`)
      }
      const { id, jid, sender, sender_name = sender, text } = parsed.data
      if (jid !== `${prefix}${name}`) {
        return refuse('invalid_field', 'jid: is not the chat this address is for')
      }
      const received = await host.receive({
        jid,
        externalId: id,
        sender,
        senderName: sender_name,
        text,
        at: now(),
      })
      return received.ok ? { ok: true, repeated: received.id === undefined } : received
    },
  }
}

/** Those that fit are sent whole, the others only named. */
async function filesOf(
  attachments: readonly Attachment[],
  readFile: (id: string) => Promise<Buffer | undefined>,
) {
  let left = filesBytes
  const files = []
  for (const { id, name, type, bytes } of attachments) {
    const content = bytes <= left ? await readFile(id) : undefined
    if (content) left -= bytes
    files.push({ name, type, bytes, content: content?.toString('base64') ?? null })
  }
  return files
}

async function post(url: string, body: string, headers: Record<string, string>): Promise<Response> {
  try {
    return await fetch(url, {
      method: 'POST',
      body,
      headers,
      // A signature is for the address it was made for.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
    const why = cause instanceof Error && cause.name === 'TimeoutError' ? 'no answer in time' : code
    throw new Error(`the webhook cannot be reached (${why ?? 'unknown reason'})`, { cause: error })
  }
}

/** undefined for what is no JSON; the schema then says that an object was expected */
function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined
    throw error
  }
}
