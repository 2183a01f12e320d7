import { z } from 'zod'
import { type Message, type Part, textIn } from '../messages.ts'
import { type Listener, type ModelApi, ModelError, placeholder, type Reader } from './types.ts'

/** OpenAI's Responses API, which is asked to keep nothing. */
export const responses: ModelApi = {
  path: () => '/v1/responses',
  headers: { authorization: `Bearer ${placeholder}` },
  body: ({ model, system, tools, messages }) => ({
    model,
    stream: true,
    store: false,
    instructions: system,
    input: messages.flatMap(message => told(message, model)),
    ...(reasons.test(model) ? { include: ['reasoning.encrypted_content'] } : {}),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, schema }) => ({
            type: 'function',
            name,
            description,
            parameters: schema,
            // Else every argument would have to be required.
            strict: false,
          })),
        }),
  }),
  read,
}

/** Models that refuse to be asked for their reasoning, as they have none, are all others. */
const reasons = /^(?:o\d|gpt-[5-9](?!.*chat)|codex)/

function told(message: Message, model: string): readonly object[] {
  switch (message.role) {
    case 'user':
      return [{ type: 'message', role: 'user', content: message.parts.map(partOf) }]
    case 'assistant':
      if (message.own?.api === 'responses' && message.own.model === model) return message.own.items
      return [
        ...(message.text === ''
          ? []
          : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: message.text }] }]),
        ...message.calls.map(({ id, name, input }) => ({
          type: 'function_call',
          call_id: id,
          name,
          arguments: input,
        })),
      ]
    case 'tool':
      return message.results.map(({ id, parts }) => ({
        type: 'function_call_output',
        call_id: id,
        output: parts.every(({ type }) => type === 'text') ? textIn(parts) : parts.map(partOf),
      }))
  }
}

const partOf = (part: Part) =>
  part.type === 'text'
    ? { type: 'input_text', text: part.text }
    : { type: 'input_image', image_url: `data:${part.mime};base64,${part.data}`, detail: 'auto' }

const itemSchema = z.looseObject({
  type: z.string(),
  call_id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.string().optional(),
  encrypted_content: z.string().nullish(),
  content: z.array(z.looseObject({ text: z.string().optional(), refusal: z.string().optional() })).nullish(),
})
type Item = z.infer<typeof itemSchema>

const eventSchema = z.looseObject({
  type: z.string(),
  delta: z.unknown().optional(),
  item: itemSchema.optional(),
  message: z.string().nullish(),
  response: z
    .looseObject({
      output: z.array(itemSchema).nullish(),
      usage: z.looseObject({ input_tokens: z.number() }).nullish(),
      error: z.looseObject({ message: z.string() }).nullish(),
      incomplete_details: z.looseObject({ reason: z.string() }).nullish(),
    })
    .optional(),
})

function read(listener: Listener): Reader {
  const done: Item[] = []
  let end: z.infer<typeof eventSchema> | undefined

  return {
    take(given) {
      const event = eventSchema.parse(given)
      const piece = typeof event.delta === 'string' ? event.delta : ''
      switch (event.type) {
        case 'response.output_text.delta':
        case 'response.refusal.delta':
          return listener.text(piece)
        case 'response.reasoning_summary_text.delta':
        case 'response.reasoning_text.delta':
          return listener.thinking(piece)
        case 'response.output_item.done':
          if (event.item) done.push(event.item)
          return
        case 'response.completed':
        case 'response.incomplete':
          end = event
          return
        case 'error':
        case 'response.failed': {
          const why = event.response?.error?.message ?? event.message ?? 'no reason given'
          throw new ModelError(`The model’s API failed: ${why}`)
        }
      }
    },
    answer() {
      if (!end) return undefined
      const { output, usage, incomplete_details } = end.response ?? {}
      const items = output?.length ? output : done
      const isSealed = items.some(({ type, encrypted_content }) => type === 'reasoning' && encrypted_content)
      return {
        text: items.map(textOf).join(''),
        calls: items.flatMap(({ type, call_id = '', name = '', arguments: input = '{}' }) =>
          type === 'function_call' ? [{ id: call_id, name, input: input || '{}' }] : [],
        ),
        ...(isSealed ? { own: items } : {}),
        ...(usage ? { inputTokens: usage.input_tokens } : {}),
        ...(end.type === 'response.incomplete' ? { cut: incomplete_details?.reason ?? 'incomplete' } : {}),
      }
    },
  }
}

const textOf = ({ type, content }: Item): string =>
  type === 'message' ? (content ?? []).map(({ text, refusal }) => text ?? refusal ?? '').join('') : ''
