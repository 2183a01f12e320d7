import { z } from 'zod'

/** A conversation in a form of our own, which each API is told in its own way and which is kept on disk. */

const partSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), mime: z.string(), data: z.string() }),
])
export type Part = z.infer<typeof partSchema>

const callSchema = z.object({
  id: z.string().min(1),
  name: z.string(),
  input: z.string().describe('a JSON object'),
})
export type ToolCall = z.infer<typeof callSchema>

const resultSchema = z.object({
  id: z.string(),
  name: z.string(),
  parts: z.array(partSchema),
  isError: z.boolean(),
})
export type ToolResult = z.infer<typeof resultSchema>

export const messageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), parts: z.array(partSchema) }),
  z.object({
    role: z.literal('assistant'),
    text: z.string(),
    calls: z.array(callSchema),
    own: z
      .object({ api: z.string(), model: z.string(), items: z.array(z.record(z.string(), z.unknown())) })
      .optional()
      .describe('as the API gave it, where it has to come back so: signed or encrypted reasoning is in it'),
  }),
  z.object({ role: z.literal('tool'), results: z.array(resultSchema) }),
])
export type Message = z.infer<typeof messageSchema>
export type AssistantMessage = Extract<Message, { role: 'assistant' }>

export const textPart = (text: string): Part => ({ type: 'text', text })
export const userMessage = (text: string): Message => ({ role: 'user', parts: [textPart(text)] })

export const textIn = (parts: readonly Part[]): string =>
  parts.map(part => (part.type === 'text' ? part.text : '(an image)')).join('\n')

/** The same messages with each image as `change` has it. */
export const withImages = (
  messages: readonly Message[],
  change: (image: Extract<Part, { type: 'image' }>) => Part,
): Message[] => {
  const changed = (parts: readonly Part[]) => parts.map(part => (part.type === 'image' ? change(part) : part))
  return messages.map(message => {
    if (message.role === 'user') return { ...message, parts: changed(message.parts) }
    if (message.role === 'assistant') return message
    return {
      ...message,
      results: message.results.map(result => ({ ...result, parts: changed(result.parts) })),
    }
  })
}

export const hasImages = (messages: readonly Message[]): boolean =>
  messages.some(message =>
    message.role === 'user'
      ? message.parts.some(isImage)
      : message.role === 'tool' && message.results.some(({ parts }) => parts.some(isImage)),
  )
const isImage = ({ type }: Part) => type === 'image'

/** Each call gets a result: a conversation with one that has none is refused by every API. */
export function withAllResults(messages: readonly Message[], missing: string): Message[] {
  const whole: Message[] = []
  messages.forEach((message, index) => {
    whole.push(message)
    if (message.role !== 'assistant' || message.calls.length === 0) return
    const next = messages[index + 1]
    const known = new Map(next?.role === 'tool' ? next.results.map(result => [result.id, result]) : [])
    whole.push({
      role: 'tool',
      results: message.calls.map(
        ({ id, name }) => known.get(id) ?? { id, name, parts: [textPart(missing)], isError: true },
      ),
    })
  })
  // Results stand behind their calls now; where they stood before, and where there is no call, they go.
  return whole.filter((message, index) => {
    const before = whole[index - 1]
    return message.role !== 'tool' || (before?.role === 'assistant' && before.calls.length > 0)
  })
}
