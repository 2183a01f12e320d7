import { z } from 'zod'

/** What one request to the model cost. */
export interface ModelUsage {
  model: string
  inputTokens: number
  outputTokens: number
}

const count = z.number().int().nonnegative().nullish()
const usageSchema = z.object({
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  output_tokens: count,
})
const messageSchema = z.object({ model: z.string().optional(), usage: usageSchema.optional() })
const eventSchema = z.object({ message: messageSchema.optional(), usage: usageSchema.optional() })

/** Reads along with a response. Whatever it does not understand costs nothing, and never disturbs the response. */
export interface UsageReader {
  push(chunk: Buffer): void
  /** whether the rest of the response need not be waited for to know what was paid for */
  mayStop(): boolean
  result(): ModelUsage
}

const mostBytes = 8 * 1_048_576
/** A name is a column of the usage table, and some gateways repeat whatever the sandbox has sent as one. */
const modelName = /^[\w.:@/ -]{1,200}$/

export function readUsage(contentType: string): UsageReader {
  const found = { model: '', inputTokens: 0, outputTokens: 0 }
  const take = (value: z.infer<typeof messageSchema>) => {
    if (value.model !== undefined && modelName.test(value.model)) found.model = value.model
    const { usage } = value
    if (!usage) return
    const input =
      (usage.input_tokens ?? 0) +
      (usage.cache_creation_input_tokens ?? 0) +
      (usage.cache_read_input_tokens ?? 0)
    // Later events of a stream count from the beginning, so the largest is the sum.
    found.inputTokens = Math.max(found.inputTokens, input)
    found.outputTokens = Math.max(found.outputTokens, usage.output_tokens ?? 0)
  }
  return contentType.includes('text/event-stream') ? fromEvents(take, found) : fromDocument(take, found)
}

type Take = (value: z.infer<typeof messageSchema>) => void

/** what an event adds around a piece of text, and how many bytes of text make a token, both roughly */
const envelopeBytes = 80
const bytesPerToken = 4

function fromEvents(take: Take, found: ModelUsage): UsageReader {
  let rest = Buffer.alloc(0)
  let contentBytes = 0
  let isBegun = false
  let isEnded = false
  const line = (text: string) => {
    if (!text.startsWith('data:')) return
    // Only two of the others carry usage; the rest is not worth parsing.
    if (text.includes('"content_block_delta"')) contentBytes += Math.max(1, text.length - envelopeBytes)
    if (!/message_start|message_delta/.test(text)) return
    const event = eventSchema.safeParse(parsed(text.slice(5)))
    if (!event.success) return
    if (event.data.message?.usage) isBegun = true
    if (event.data.message) take(event.data.message)
    if (!event.data.usage) return
    take({ usage: event.data.usage })
    isEnded = true
  }
  return {
    push(chunk) {
      rest = Buffer.concat([rest, chunk])
      for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
        line(rest.toString('utf8', 0, end).trim())
        rest = rest.subarray(end + 1)
      }
      if (rest.length > mostBytes) rest = Buffer.alloc(0)
    },
    mayStop: () => isBegun,
    result() {
      line(rest.toString('utf8').trim())
      rest = Buffer.alloc(0)
      // Output is told at the end of a stream. Of one that was broken off we count what we have seen of it.
      const seen = isEnded ? 0 : Math.ceil(contentBytes / bytesPerToken)
      return { ...found, outputTokens: Math.max(found.outputTokens, seen) }
    },
  }
}

function fromDocument(take: Take, found: ModelUsage): UsageReader {
  const chunks: Buffer[] = []
  let size = 0
  return {
    push(chunk) {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
    },
    mayStop: () => false,
    result() {
      const message =
        size <= mostBytes ? messageSchema.safeParse(parsed(Buffer.concat(chunks).toString())) : undefined
      if (message?.success) take(message.data)
      return found
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
