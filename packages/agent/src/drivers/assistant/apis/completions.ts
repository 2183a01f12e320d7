import { z } from 'zod'
import { type Message, type Part, textIn } from '../messages.ts'
import { type Listener, type ModelApi, ModelError, placeholder, type Reader } from './types.ts'

/** OpenAI's Chat Completions, which nearly every server of open models speaks as well. */
export const completions: ModelApi = {
  path: () => '/v1/chat/completions',
  headers: { authorization: `Bearer ${placeholder}` },
  body: ({ model, system, tools, messages }) => ({
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'system', content: system }, ...messages.flatMap(told)],
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, schema }) => ({
            type: 'function',
            function: { name, description, parameters: schema },
          })),
        }),
  }),
  read,
}

function told(message: Message): readonly object[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: contentOf(message.parts) }]
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: message.text,
          ...(message.calls.length === 0
            ? {}
            : {
                tool_calls: message.calls.map(({ id, name, input }) => ({
                  id,
                  type: 'function',
                  function: { name, arguments: input },
                })),
              }),
        },
      ]
    case 'tool': {
      // A tool's result is a text here; its images follow as if a person had sent them.
      const images = message.results.flatMap(({ parts }) => parts.filter(({ type }) => type === 'image'))
      return [
        ...message.results.map(({ id, parts }) => ({
          role: 'tool',
          tool_call_id: id,
          content: textIn(parts),
        })),
        ...(images.length === 0
          ? []
          : [
              {
                role: 'user',
                content: contentOf([{ type: 'text', text: 'The images of these results:' }, ...images]),
              },
            ]),
      ]
    }
  }
}

/** Many servers take only a text, so it is one wherever it can be. */
const contentOf = (parts: readonly Part[]) =>
  parts.every(({ type }) => type === 'text')
    ? textIn(parts)
    : parts.map(part =>
        part.type === 'text'
          ? { type: 'text', text: part.text }
          : { type: 'image_url', image_url: { url: `data:${part.mime};base64,${part.data}` } },
      )

const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z
          .looseObject({
            content: z.string().nullish(),
            reasoning_content: z.string().nullish(),
            reasoning: z.string().nullish(),
            tool_calls: z
              .array(
                z.looseObject({
                  index: z.number().nullish(),
                  id: z.string().nullish(),
                  function: z
                    .looseObject({ name: z.string().nullish(), arguments: z.unknown().optional() })
                    .nullish(),
                }),
              )
              .nullish(),
          })
          .nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z.looseObject({ prompt_tokens: z.number().nullish() }).nullish(),
  error: z.unknown().optional(),
})

function read(listener: Listener): Reader {
  const calls: { index: number | undefined; id: string; name: string; input: string }[] = []
  let text = ''
  let reason: string | undefined
  let inputTokens: number | undefined

  const callAt = (index: number | undefined, id: string, name: string) => {
    const known = calls.findLast(call =>
      index === undefined ? id === '' || call.id === id : call.index === index,
    )
    // Some servers give each whole call the same index.
    if (known && (name === '' || known.name === '' || id === '' || id === known.id)) return known
    const call = { index, id, name: '', input: '' }
    calls.push(call)
    return call
  }
  return {
    take(given) {
      const { choices, usage, error } = chunkSchema.parse(given)
      if (error) throw new ModelError(`The model’s API failed: ${reasonIn(error)}`)
      inputTokens = usage?.prompt_tokens ?? inputTokens
      const [choice] = choices ?? []
      reason = choice?.finish_reason ?? reason
      const { content, reasoning_content, reasoning, tool_calls } = choice?.delta ?? {}
      const thought = reasoning_content || reasoning
      if (thought) listener.thinking(thought)
      if (content) {
        text += content
        listener.text(content)
      }
      for (const { index, id, function: called } of tool_calls ?? []) {
        const call = callAt(index ?? undefined, id ?? '', called?.name ?? '')
        call.id ||= id ?? ''
        call.name ||= called?.name ?? ''
        const piece = called?.arguments
        call.input += typeof piece === 'string' ? piece : piece ? JSON.stringify(piece) : ''
      }
    },
    answer() {
      if (reason === undefined) return undefined
      return {
        text,
        calls: calls.map(({ id, name, input }) => ({ id, name, input: input || '{}' })),
        ...(inputTokens === undefined ? {} : { inputTokens }),
        ...(reason === 'length' || reason === 'content_filter' ? { cut: reason } : {}),
      }
    },
  }
}

const reasonIn = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error
    ? String(error.message)
    : JSON.stringify(error)
