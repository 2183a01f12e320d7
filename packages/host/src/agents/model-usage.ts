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
  result(): ModelUsage | undefined
}

const mostBytes = 8 * 1_048_576

export function readUsage(contentType: string): UsageReader {
  const found = { model: '', inputTokens: 0, outputTokens: 0 }
  let any = false
  const take = (value: z.infer<typeof messageSchema>) => {
    if (value.model !== undefined) found.model = value.model
    const { usage } = value
    if (!usage) return
    any = true
    const input =
      (usage.input_tokens ?? 0) +
      (usage.cache_creation_input_tokens ?? 0) +
      (usage.cache_read_input_tokens ?? 0)
    // Later events of a stream count from the beginning, so the largest is the sum.
    found.inputTokens = Math.max(found.inputTokens, input)
    found.outputTokens = Math.max(found.outputTokens, usage.output_tokens ?? 0)
  }
  const result = () => (any ? found : undefined)
  return contentType.includes('text/event-stream') ? fromEvents(take, result) : fromDocument(take, result)
}

type Take = (value: z.infer<typeof messageSchema>) => void

function fromEvents(take: Take, result: UsageReader['result']): UsageReader {
  let rest = Buffer.alloc(0)
  const line = (text: string) => {
    // Only these two carry usage; the many others are not worth parsing.
    if (!text.startsWith('data:') || !/message_start|message_delta/.test(text)) return
    const event = eventSchema.safeParse(parsed(text.slice(5)))
    if (!event.success) return
    if (event.data.message) take(event.data.message)
    if (event.data.usage) take({ usage: event.data.usage })
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
    result() {
      line(rest.toString('utf8').trim())
      return result()
    },
  }
}

function fromDocument(take: Take, result: UsageReader['result']): UsageReader {
  const chunks: Buffer[] = []
  let size = 0
  return {
    push(chunk) {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
    },
    result() {
      const message =
        size <= mostBytes ? messageSchema.safeParse(parsed(Buffer.concat(chunks).toString())) : undefined
      if (message?.success) take(message.data)
      return result()
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
