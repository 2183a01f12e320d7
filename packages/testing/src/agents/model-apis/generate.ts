import {
  type ApiFormat,
  event,
  fieldsOf,
  freshId,
  listOf,
  type ModelReply,
  piecesOf,
  textOf,
  usage,
} from './types.ts'

/** https://ai.google.dev/api/generate-content */
export const generate: ApiFormat = {
  name: 'generate',
  path: /^\/v1(?:beta)?\/models\/[^/:]+:(?:streamGenerateContent|generateContent)(?:\?.*)?$/,
  read(body, path) {
    // Its calls have no ids of their own; a result belongs to a call by its place.
    let calls: string[] = []
    let counter = 0
    return {
      model: /models\/([^:]+):/.exec(path)?.[1] ?? '',
      stream: path.includes(':streamGenerateContent'),
      system: textOf(fieldsOf(body.systemInstruction).parts),
      tools: listOf(body.tools).flatMap(({ functionDeclarations }) =>
        listOf(functionDeclarations).map(({ name }) => String(name)),
      ),
      said: listOf(body.contents).map(({ role, parts }) => {
        const called = listOf(parts).flatMap(({ functionCall }) =>
          functionCall ? [fieldsOf(functionCall)] : [],
        )
        const answered = listOf(parts).flatMap(({ functionResponse }) =>
          functionResponse ? [fieldsOf(functionResponse)] : [],
        )
        const results = answered.map(() => calls.shift() ?? 'none')
        const ids = called.map(() => `place-${++counter}`)
        if (role === 'model') calls = [...ids]
        return {
          role: role === 'model' ? ('assistant' as const) : ('user' as const),
          text: [
            ...listOf(parts).map(({ text, thought }) => (typeof text === 'string' && !thought ? text : '')),
            ...answered.map(({ response }) => JSON.stringify(response)),
          ].join(''),
          images: listOf(parts).filter(({ inlineData }) => inlineData !== undefined).length,
          calls: called.map(({ name, args }, index) => ({
            id: ids[index] ?? '',
            name: String(name),
            input: JSON.stringify(args),
          })),
          results,
        }
      }),
    }
  },
  events(model, reply) {
    const parts = partsOf(reply).flatMap((part): readonly object[] =>
      'text' in part ? piecesOf(part.text).map(text => ({ ...part, text })) : [part],
    )
    return [
      ...parts.map(part => event(answerOf(model, [part]))),
      event(answerOf(model, [{ text: '' }], 'STOP')),
    ]
  },
  whole: (model, reply) => answerOf(model, partsOf(reply), 'STOP'),
  error: (code, message) => ({ error: { code, message, status: statusNames[code] ?? 'INTERNAL' } }),
}

type Part = { text: string; thought?: boolean } | { functionCall: object; thoughtSignature: string }

const statusNames: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}

const partsOf = ({ thinking, text, calls = [] }: ModelReply): readonly Part[] => [
  ...(thinking === undefined ? [] : [{ text: thinking, thought: true }]),
  ...(text === undefined ? [] : [{ text }]),
  ...calls.map(({ name, input }) => ({
    // Arguments are an object here: a text that is none cannot be sent.
    functionCall: { name, args: typeof input === 'string' ? { text: input } : input },
    thoughtSignature: 'c2lnbmVk',
  })),
]

const answerOf = (model: string, parts: readonly object[], finishReason?: string) => ({
  candidates: [
    { content: { role: 'model', parts }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
  ],
  usageMetadata: {
    promptTokenCount: usage.in,
    candidatesTokenCount: usage.out,
    totalTokenCount: usage.in + usage.out,
  },
  modelVersion: model,
  responseId: freshId('response-'),
})
