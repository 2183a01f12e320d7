import { z } from 'zod'
import { type Message, type Part, textIn } from '../messages.ts'
import {
  type Listener,
  type ModelApi,
  ModelError,
  objectIn,
  placeholder,
  type Question,
  type Reader,
} from './types.ts'

/** Google's generateContent. */
export const generate: ModelApi = {
  path: model => `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
  headers: { 'x-goog-api-key': placeholder },
  body: ({ model, system, tools, messages }) => ({
    systemInstruction: { parts: [{ text: system }] },
    contents: messages.map(message => ({
      role: message.role === 'assistant' ? 'model' : 'user',
      parts: partsOf(message, model),
    })),
    ...(tools.length === 0
      ? {}
      : {
          tools: [
            {
              functionDeclarations: tools.map(({ name, description, schema }) => ({
                name,
                description,
                parametersJsonSchema: schema,
              })),
            },
          ],
        }),
  }),
  read,
}

function partsOf(message: Message, model: Question['model']): readonly object[] {
  switch (message.role) {
    case 'user':
      return message.parts.map(partOf)
    case 'assistant':
      if (message.own?.api === 'generate' && message.own.model === model) return message.own.items
      return [
        ...(message.text === '' ? [] : [{ text: message.text }]),
        ...message.calls.map(({ name, input }) => ({ functionCall: { name, args: objectIn(input) } })),
      ]
    case 'tool':
      return [
        ...message.results.map(({ name, parts, isError }) => ({
          functionResponse: { name, response: { [isError ? 'error' : 'output']: textIn(parts) } },
        })),
        ...message.results.flatMap(({ parts }) => parts.filter(({ type }) => type === 'image').map(partOf)),
      ]
  }
}

const partOf = (part: Part) =>
  part.type === 'text' ? { text: part.text } : { inlineData: { mimeType: part.mime, data: part.data } }

const partSchema = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  functionCall: z.looseObject({ name: z.string(), args: z.looseObject({}).nullish() }).optional(),
})

const chunkSchema = z.looseObject({
  candidates: z
    .array(
      z.looseObject({
        content: z.looseObject({ parts: z.array(partSchema).optional() }).optional(),
        finishReason: z.string().optional(),
      }),
    )
    .optional(),
  promptFeedback: z.looseObject({ blockReason: z.string().optional() }).optional(),
  usageMetadata: z.looseObject({ promptTokenCount: z.number().optional() }).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
})

function read(listener: Listener): Reader {
  const parts: z.infer<typeof partSchema>[] = []
  let reason: string | undefined
  let inputTokens: number | undefined

  const keep = (part: z.infer<typeof partSchema>) => {
    const last = parts.at(-1)
    const isPlain = (one: typeof part | undefined) =>
      one?.text !== undefined && one.thoughtSignature === undefined && one.functionCall === undefined
    if (last && isPlain(last) && isPlain(part) && last.thought === part.thought) last.text += part.text ?? ''
    else parts.push({ ...part })
  }
  return {
    take(given) {
      const { candidates, promptFeedback, usageMetadata, error } = chunkSchema.parse(given)
      if (error) throw new ModelError(`The model’s API failed: ${error.message}`)
      inputTokens = usageMetadata?.promptTokenCount ?? inputTokens
      const [candidate] = candidates ?? []
      reason = candidate?.finishReason ?? promptFeedback?.blockReason ?? reason
      for (const part of candidate?.content?.parts ?? []) {
        keep(part)
        if (part.text && part.thought) listener.thinking(part.text)
        else if (part.text) listener.text(part.text)
      }
    },
    answer() {
      if (reason === undefined) return undefined
      const isSigned = parts.some(({ thoughtSignature }) => thoughtSignature !== undefined)
      return {
        text: parts.map(({ text = '', thought }) => (thought ? '' : text)).join(''),
        // A result belongs to its call by name and place.
        calls: parts.flatMap(({ functionCall }) =>
          functionCall
            ? [{ id: '', name: functionCall.name, input: JSON.stringify(functionCall.args ?? {}) }]
            : [],
        ),
        ...(isSigned
          ? { own: parts.filter(({ thought, thoughtSignature }) => !thought || thoughtSignature) }
          : {}),
        ...(inputTokens === undefined ? {} : { inputTokens }),
        ...(reason === 'STOP' ? {} : { cut: reason }),
      }
    },
  }
}
