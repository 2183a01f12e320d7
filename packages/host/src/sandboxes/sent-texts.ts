import { z } from 'zod'

/**
 * What an agent sends with its tool `send_message`, as the host's model gateway hears it in the model's own words. mdclaw
 * prints such a message between the same markers as its answers, byte for byte in the same form: this is what tells a
 * message in the middle of a turn from the end of it.
 */
export interface SentTexts {
  /** reads along with a response of the model */
  listen(contentType: string): { push(chunk: Buffer): void; end(): void }
  /** whether the model sends this with its tool; asked once for each time it does */
  take(text: string): boolean
  /** a turn has ended: whatever was to be sent in it and was not will not be */
  clear(): void
}

const kept = 100
const mostBytes = 8 * 1_048_576
const toolName = /(?:^|__)send_message$/
const inputSchema = z.object({ text: z.string() })
const callSchema = z.object({ type: z.literal('tool_use'), name: z.string().regex(toolName) })
const eventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('content_block_start'), index: z.number(), content_block: callSchema }),
  z.object({
    type: z.literal('content_block_delta'),
    index: z.number(),
    delta: z.object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
  }),
  z.object({ type: z.literal('content_block_stop'), index: z.number() }),
])
const documentSchema = z.object({ content: z.array(z.unknown()) })

export function createSentTexts(): SentTexts {
  let texts: string[] = []
  const note = (input: unknown) => {
    const call = inputSchema.safeParse(input)
    if (call.success && texts.length < kept) texts.push(call.data.text.trim())
  }
  return {
    listen: contentType =>
      contentType.includes('text/event-stream') ? listenToEvents(note) : listenToDocument(note),
    take(text) {
      const at = texts.indexOf(text.trim())
      if (at >= 0) texts.splice(at, 1)
      return at >= 0
    },
    clear() {
      texts = []
    },
  }
}

type Note = (input: unknown) => void

function listenToEvents(note: Note) {
  /** the pieces of each call that is being told, by its place in the message */
  const calls = new Map<number, string>()
  let rest = Buffer.alloc(0)
  const line = (text: string) => {
    // Most of what a model says is no call of this tool, and not worth parsing.
    if (!text.startsWith('data:') || (calls.size === 0 && !text.includes('send_message'))) return
    const event = eventSchema.safeParse(parsed(text.slice(5)))
    if (!event.success) return
    const { type, index } = event.data
    const told = calls.get(index)
    if (type === 'content_block_start') calls.set(index, '')
    else if (told === undefined) return
    else if (type === 'content_block_stop') {
      calls.delete(index)
      note(parsed(told))
    } else if (told.length <= mostBytes) calls.set(index, told + event.data.delta.partial_json)
  }
  return {
    push(chunk: Buffer) {
      rest = Buffer.concat([rest, chunk])
      for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
        line(rest.toString('utf8', 0, end).trim())
        rest = rest.subarray(end + 1)
      }
      if (rest.length > mostBytes) rest = Buffer.alloc(0)
    },
    end() {},
  }
}

function listenToDocument(note: Note) {
  const chunks: Buffer[] = []
  let size = 0
  return {
    push(chunk: Buffer) {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
    },
    end() {
      const message = documentSchema.safeParse(parsed(Buffer.concat(chunks).toString()))
      for (const block of message.success ? message.data.content : []) {
        const call = callSchema.extend({ input: z.unknown() }).safeParse(block)
        if (call.success) note(call.data.input)
      }
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
