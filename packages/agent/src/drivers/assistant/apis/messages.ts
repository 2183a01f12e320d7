import { z } from 'zod'
import type { Message, Part } from '../messages.ts'
import {
  type Listener,
  type ModelApi,
  ModelError,
  objectIn,
  placeholder,
  type Question,
  type Reader,
} from './types.ts'

/** Anthropic's Messages API. */
export const messages: ModelApi = {
  path: () => '/v1/messages',
  headers: { 'anthropic-version': '2023-06-01', 'x-api-key': placeholder },
  body: question => {
    const { model, system, tools, maxTokens } = question
    return {
      model,
      max_tokens: maxTokens,
      stream: true,
      system: [{ type: 'text', text: system, ...cached }],
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map(({ name, description, schema }) => ({
              name,
              description,
              input_schema: schema,
            })),
          }),
      messages: told(question),
    }
  },
  read,
}

/** All before it is read from the provider's cache the next time. */
const cached = { cache_control: { type: 'ephemeral' } }

interface Told {
  role: 'user' | 'assistant'
  content: Readonly<Record<string, unknown>>[]
}

function told({ messages: all, model }: Question): readonly Told[] {
  const list = all.map((message): Told => {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    return { role, content: blocksOf(message, model) }
  })
  const last = list.at(-1)
  const block = last?.content.at(-1)
  if (last && block && last.role === 'user')
    last.content = [...last.content.slice(0, -1), { ...block, ...cached }]
  return list
}

function blocksOf(message: Message, model: string): Readonly<Record<string, unknown>>[] {
  switch (message.role) {
    case 'user':
      return message.parts.map(partOf)
    case 'assistant':
      if (message.own?.api === 'messages' && message.own.model === model) return message.own.items
      return [
        ...(message.text === '' ? [] : [{ type: 'text', text: message.text }]),
        ...message.calls.map(({ id, name, input }) => ({
          type: 'tool_use',
          id,
          name,
          input: objectIn(input),
        })),
      ]
    case 'tool':
      return message.results.map(({ id, parts, isError }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: parts.map(partOf),
        ...(isError ? { is_error: true } : {}),
      }))
  }
}

const partOf = (part: Part) =>
  part.type === 'text'
    ? // An empty text is refused.
      { type: 'text', text: part.text || '(nothing)' }
    : { type: 'image', source: { type: 'base64', media_type: part.mime, data: part.data } }

const eventSchema = z.looseObject({
  type: z.string(),
  index: z.number().optional(),
  message: z.looseObject({ usage: z.looseObject({}).optional() }).optional(),
  content_block: z.looseObject({ type: z.string() }).optional(),
  delta: z
    .looseObject({
      type: z.string().optional(),
      text: z.string().optional(),
      thinking: z.string().optional(),
      signature: z.string().optional(),
      partial_json: z.string().optional(),
      stop_reason: z.string().nullish(),
    })
    .optional(),
  error: z.looseObject({ message: z.string() }).optional(),
})
type Event = z.infer<typeof eventSchema>

const usageSchema = z.looseObject({
  input_tokens: z.number().nullish(),
  cache_read_input_tokens: z.number().nullish(),
  cache_creation_input_tokens: z.number().nullish(),
})

interface Block {
  start: Record<string, unknown>
  text: string
  thinking: string
  signature: string
  json: string
}

function read(listener: Listener): Reader {
  const blocks = new Map<number, Block>()
  let isOver = false
  let inputTokens: number | undefined
  let stopReason: string | undefined

  const grow = (
    block: Block,
    { text = '', thinking = '', signature = '', partial_json = '' }: NonNullable<Event['delta']>,
  ) => {
    block.text += text
    block.thinking += thinking
    block.signature += signature
    block.json += partial_json
    if (text !== '') listener.text(text)
    if (thinking !== '') listener.thinking(thinking)
  }
  return {
    take(given) {
      const event = eventSchema.parse(given)
      const { index = 0, delta } = event
      if (event.type === 'error')
        throw new ModelError(`The model’s API failed: ${event.error?.message ?? 'no reason given'}`)
      if (event.type === 'message_start') inputTokens = tokensIn(event.message?.usage)
      if (event.type === 'content_block_start' && event.content_block) {
        const block = { start: { ...event.content_block }, text: '', thinking: '', signature: '', json: '' }
        blocks.set(index, block)
        const { text, thinking } = z
          .looseObject({ text: z.string().optional(), thinking: z.string().optional() })
          .parse(event.content_block)
        grow(block, { text, thinking })
      }
      const block = blocks.get(index)
      if (event.type === 'content_block_delta' && block && delta) grow(block, delta)
      if (event.type === 'message_delta') stopReason = delta?.stop_reason ?? undefined
      if (event.type === 'message_stop') isOver = true
    },
    answer() {
      if (!isOver) return undefined
      const all = [...blocks.values()]
      const whole = all.map(wholeBlock)
      return {
        text: all.map(({ text }) => text).join(''),
        calls: all.flatMap(({ start, json }) =>
          start.type === 'tool_use'
            ? [{ id: String(start.id), name: String(start.name), input: json || '{}' }]
            : [],
        ),
        // Only signed thinking has to come back; everything else is told from the text and the calls.
        ...(all.some(({ start }) => /thinking/.test(String(start.type))) && whole.every(isSet)
          ? { own: whole }
          : {}),
        ...(inputTokens === undefined ? {} : { inputTokens }),
        ...(stopReason !== undefined && !/^(end_turn|tool_use|stop_sequence)$/.test(stopReason)
          ? { cut: stopReason }
          : {}),
      }
    },
  }
}

const isSet = <T>(value: T | undefined): value is T => value !== undefined

/** Undefined: its arguments are no JSON, so it cannot be given back. */
function wholeBlock({ start, text, thinking, signature, json }: Block): Record<string, unknown> | undefined {
  if (start.type === 'thinking')
    return { type: 'thinking', thinking, signature: signature || start.signature }
  if (start.type === 'text') return { type: 'text', text }
  if (start.type !== 'tool_use') return start
  try {
    return { type: 'tool_use', id: start.id, name: start.name, input: objectIn(json || '{}') }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** What was read from the cache counts as well: it takes as much room. */
function tokensIn(usage: unknown): number | undefined {
  const { data } = usageSchema.safeParse(usage)
  const sum =
    (data?.input_tokens ?? 0) +
    (data?.cache_read_input_tokens ?? 0) +
    (data?.cache_creation_input_tokens ?? 0)
  return sum || undefined
}
