import {
  type ApiFormat,
  event,
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

/** https://platform.claude.com/docs/en/api/messages and …/build-with-claude/streaming */
export const messages: ApiFormat = {
  name: 'messages',
  path: /^\/v1\/messages(?:\?beta=true)?$/,
  read: body => ({
    model: String(body.model),
    stream: body.stream === true,
    system: textOf(body.system),
    tools: listOf(body.tools).map(({ name }) => String(name)),
    said: listOf(body.messages).map(saidIn),
  }),
  events(model, reply) {
    const content = contentOf(reply)
    return [
      event(
        { type: 'message_start', message: { ...messageOf(model, reply), content: [], stop_reason: null } },
        'message_start',
      ),
      ...content.flatMap(eventsOfBlock),
      event(
        {
          type: 'message_delta',
          delta: { stop_reason: stopReason(reply), stop_sequence: null },
          usage: { output_tokens: usage.out },
        },
        'message_delta',
      ),
      event({ type: 'message_stop' }, 'message_stop'),
    ]
  },
  whole: (model, reply) => ({ ...messageOf(model, reply), content: contentOf(reply) }),
  error: (status, message) => ({
    type: 'error',
    error: { type: errorTypes[status] ?? 'api_error', message },
  }),
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function saidIn({ role, content }: Readonly<Record<string, unknown>>): Said {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)
  const inner = blocks.flatMap(block => (block.type === 'tool_result' ? listOf(block.content) : []))
  return {
    role: role === 'assistant' ? 'assistant' : 'user',
    text: blocks
      .map(block => textOf('text' in block ? block.text : 'content' in block ? block.content : ''))
      .join('\n'),
    images: [...blocks, ...inner].filter(({ type }) => type === 'image').length,
    calls: blocks.flatMap(block =>
      'input' in block
        ? [{ id: String(block.id), name: String(block.name), input: JSON.stringify(block.input) }]
        : [],
    ),
    results: blocks.flatMap(block =>
      block.type === 'tool_result' ? [String(fieldsOf(block).tool_use_id)] : [],
    ),
  }
}

const stopReason = ({ calls = [] }: ModelReply) => (calls.length > 0 ? 'tool_use' : 'end_turn')

const messageOf = (model: string, reply: ModelReply) => ({
  id: freshId('msg_'),
  type: 'message',
  role: 'assistant',
  model,
  stop_reason: stopReason(reply),
  stop_sequence: null,
  usage: { input_tokens: usage.in, output_tokens: usage.out },
})

const contentOf = ({ thinking, text, calls = [] }: ModelReply) => [
  ...(thinking === undefined ? [] : [{ type: 'thinking' as const, thinking, signature: 'signed' }]),
  ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
  ...calls.map(({ name, input }) => ({ type: 'tool_use' as const, id: freshId('toolu_'), name, input })),
]

function eventsOfBlock(block: ReturnType<typeof contentOf>[number], index: number): readonly string[] {
  const start = (content_block: object) =>
    event({ type: 'content_block_start', index, content_block }, 'content_block_start')
  const delta = (one: object) =>
    event({ type: 'content_block_delta', index, delta: one }, 'content_block_delta')
  const stop = event({ type: 'content_block_stop', index }, 'content_block_stop')
  switch (block.type) {
    case 'thinking':
      return [
        start({ type: 'thinking', thinking: '', signature: '' }),
        ...piecesOf(block.thinking).map(thinking => delta({ type: 'thinking_delta', thinking })),
        delta({ type: 'signature_delta', signature: block.signature }),
        stop,
      ]
    case 'text':
      return [
        start({ type: 'text', text: '' }),
        ...piecesOf(block.text).map(text => delta({ type: 'text_delta', text })),
        stop,
      ]
    case 'tool_use':
      return [
        start({ type: 'tool_use', id: block.id, name: block.name, input: {} }),
        ...piecesOf(inputText(block.input)).map(partial_json =>
          delta({ type: 'input_json_delta', partial_json }),
        ),
        stop,
      ]
  }
}
