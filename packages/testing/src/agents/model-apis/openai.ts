import {
  type ApiFormat,
  event,
  type Fields,
  fieldsOf,
  freshId,
  inputText,
  listOf,
  type ModelReply,
  piecesOf,
  type Said,
  textOf,
  usage,
} from './types.ts'

const error = (status: number, message: string): object => ({
  error: {
    message,
    type:
      status === 401
        ? 'authentication_error'
        : status === 429
          ? 'rate_limit_exceeded'
          : 'invalid_request_error',
    param: null,
    code: status === 404 ? 'model_not_found' : status === 401 ? 'invalid_api_key' : null,
  },
})

const nothing = { text: '', images: 0, calls: [], results: [] }
const imagesIn = (content: unknown, type: string) => listOf(content).filter(part => part.type === type).length

/** https://platform.openai.com/docs/api-reference/chat/create and …/chat-streaming */
export const completions: ApiFormat = {
  name: 'completions',
  path: /^\/v1\/chat\/completions$/,
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    system: listOf(body.messages)
      .flatMap(({ role, content }) => (role === 'system' || role === 'developer' ? [textOf(content)] : []))
      .join('\n'),
    tools: listOf(body.tools).map(tool => String(fieldsOf(tool.function).name)),
    said: listOf(body.messages).flatMap(saidInCompletions),
  }),
  events(model, reply) {
    const id = freshId('chatcmpl-')
    const chunk = (delta: object, finish_reason: string | null = null) =>
      event({
        id,
        object: 'chat.completion.chunk',
        created: 1,
        model,
        choices: [{ index: 0, delta, finish_reason }],
      })
    return [
      chunk({ role: 'assistant', content: '' }),
      // OpenAI does not show it; the servers of open models do, by this name.
      ...piecesOf(reply.thinking ?? '').map(reasoning_content => chunk({ reasoning_content })),
      ...piecesOf(reply.text ?? '').map(content => chunk({ content })),
      ...(reply.calls ?? []).flatMap(({ name, input }, index) => [
        chunk({
          tool_calls: [{ index, id: freshId('call_'), type: 'function', function: { name, arguments: '' } }],
        }),
        ...piecesOf(inputText(input)).map(text =>
          chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
        ),
      ]),
      chunk({}, finishReason(reply)),
      event({ id, object: 'chat.completion.chunk', created: 1, model, choices: [], usage: completionsUsage }),
      'data: [DONE]\n\n',
    ]
  },
  whole: (model, reply) => ({
    id: freshId('chatcmpl-'),
    object: 'chat.completion',
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text ?? null,
          ...(reply.calls ? { tool_calls: reply.calls.map(calledInCompletions) } : {}),
        },
        finish_reason: finishReason(reply),
      },
    ],
    usage: completionsUsage,
  }),
  error,
}

const finishReason = ({ calls = [] }: ModelReply) => (calls.length > 0 ? 'tool_calls' : 'stop')
const completionsUsage = {
  prompt_tokens: usage.in,
  completion_tokens: usage.out,
  total_tokens: usage.in + usage.out,
}
const calledInCompletions = ({ name, input }: { name: string; input: object | string }) => ({
  id: freshId('call_'),
  type: 'function',
  function: { name, arguments: inputText(input) },
})

function saidInCompletions({ role, content, tool_calls, tool_call_id }: Fields): readonly Said[] {
  if (role === 'system' || role === 'developer') return []
  return [
    {
      role: role === 'assistant' || role === 'tool' ? role : 'user',
      text: textOf(content),
      images: imagesIn(content, 'image_url'),
      calls: listOf(tool_calls).map(call => ({
        id: String(call.id),
        name: String(fieldsOf(call.function).name),
        input: String(fieldsOf(call.function).arguments),
      })),
      results: role === 'tool' ? [String(tool_call_id)] : [],
    },
  ]
}

/** https://platform.openai.com/docs/api-reference/responses/create and …/responses-streaming */
export const responses: ApiFormat = {
  name: 'responses',
  path: /^\/v1\/responses$/,
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    system: textOf(body.instructions),
    tools: listOf(body.tools).map(({ name }) => String(name)),
    said: together(listOf(body.input).flatMap(saidInResponses)),
  }),
  events(model, reply) {
    const whole = responseOf(model, reply)
    let sequence_number = 0
    const send = (type: string, data: object) =>
      event({ type, sequence_number: sequence_number++, ...data }, type)
    return [
      send('response.created', { response: { ...whole, status: 'in_progress', output: [] } }),
      ...whole.output.flatMap((item, output_index) => [
        send('response.output_item.added', { output_index, item: begunItem(item) }),
        ...deltasOf(item).map(([type, delta]) =>
          send(type, { item_id: item.id, output_index, content_index: 0, summary_index: 0, delta }),
        ),
        send('response.output_item.done', { output_index, item }),
      ]),
      send('response.completed', { response: whole }),
    ]
  },
  whole: responseOf,
  error,
}

type Item = ReturnType<typeof itemsOf>[number]

const itemsOf = ({ thinking, text, calls = [] }: ModelReply) => [
  ...(thinking === undefined
    ? []
    : [
        {
          type: 'reasoning' as const,
          id: freshId('rs_'),
          summary: [{ type: 'summary_text', text: thinking }],
          encrypted_content: 'encrypted',
        },
      ]),
  ...(text === undefined
    ? []
    : [
        {
          type: 'message' as const,
          id: freshId('msg_'),
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text, annotations: [] }],
        },
      ]),
  ...calls.map(({ name, input }) => ({
    type: 'function_call' as const,
    id: freshId('fc_'),
    call_id: freshId('call_'),
    status: 'completed',
    name,
    arguments: inputText(input),
  })),
]

function responseOf(model: string, reply: ModelReply) {
  return {
    id: freshId('resp_'),
    object: 'response',
    created_at: 1,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model,
    output: itemsOf(reply),
    usage: { input_tokens: usage.in, output_tokens: usage.out, total_tokens: usage.in + usage.out },
  }
}

const begunItem = (item: Item): object =>
  item.type === 'function_call'
    ? { ...item, status: 'in_progress', arguments: '' }
    : item.type === 'message'
      ? { ...item, status: 'in_progress', content: [] }
      : { ...item, summary: [] }

function deltasOf(item: Item): readonly (readonly [string, string])[] {
  const pieces = (type: string, text: string) => piecesOf(text).map(piece => [type, piece] as const)
  switch (item.type) {
    case 'reasoning':
      return pieces('response.reasoning_summary_text.delta', textOf(item.summary))
    case 'message':
      return pieces('response.output_text.delta', textOf(item.content))
    case 'function_call':
      return pieces('response.function_call_arguments.delta', item.arguments)
  }
}

function saidInResponses(item: Fields): readonly Said[] {
  switch (item.type ?? 'message') {
    case 'message':
      return [
        {
          ...nothing,
          role: item.role === 'assistant' ? 'assistant' : 'user',
          text: textOf(item.content),
          images: imagesIn(item.content, 'input_image'),
        },
      ]
    case 'function_call':
      return [
        {
          ...nothing,
          role: 'assistant',
          calls: [{ id: String(item.call_id), name: String(item.name), input: String(item.arguments) }],
        },
      ]
    case 'function_call_output':
      return [
        {
          ...nothing,
          role: 'tool',
          text: textOf(item.output),
          images: imagesIn(item.output, 'input_image'),
          results: [String(item.call_id)],
        },
      ]
    default:
      return []
  }
}

/** The items of one answer of the model, as one message. */
function together(said: readonly Said[]): readonly Said[] {
  const messages: Said[] = []
  for (const one of said) {
    const last = messages.at(-1)
    if (one.role === 'assistant' && last?.role === 'assistant')
      messages[messages.length - 1] = {
        ...last,
        text: last.text + one.text,
        calls: [...last.calls, ...one.calls],
      }
    else messages.push(one)
  }
  return messages
}
