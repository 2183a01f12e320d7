import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { z } from 'zod'

/**
 * The Messages API as far as an agent needs it, served by a test on a unix socket or on loopback. The test says what the
 * model answers; everything around the model is real.
 */
export interface MessagesApi {
  /** requests in which an agent spoke to the model, in order; auxiliary ones without tools are not among them */
  readonly requests: readonly ModelRequest[]
  /** for ANTHROPIC_BASE_URL, where it listens on loopback */
  readonly url: string
  close(): Promise<void>
}

const requestSchema = z.looseObject({
  model: z.string(),
  stream: z.boolean().default(false),
  system: z.unknown(),
  tools: z.array(z.looseObject({ name: z.string() })).default([]),
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
})
export type ModelRequest = z.infer<typeof requestSchema> & { headers: IncomingMessage['headers'] }

interface ModelReply {
  text?: string
  calls?: readonly { name: string; input: object }[]
}

/** thrown by a model: the request is refused for good, where anything else would be tried again */
export class InvalidRequest extends Error {}

export type Model = (request: ModelRequest, index: number) => ModelReply | Promise<ModelReply>

export async function serveMessagesApi(
  model: Model,
  where: { socket: string } | 'loopback' = 'loopback',
): Promise<MessagesApi> {
  const requests: ModelRequest[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    if (request.method !== 'POST' || !request.url?.startsWith('/v1/messages')) {
      response.writeHead(404).end()
      return
    }
    if (request.url.includes('count_tokens')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":10}')
      return
    }
    const body = requestSchema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')))
    const modelRequest = { ...body, headers: request.headers }
    let reply: ModelReply = { text: 'ok' }
    if (body.tools.length > 0) {
      requests.push(modelRequest)
      reply = await model(modelRequest, requests.length - 1)
    }
    send(response, body, reply)
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      const [status, type] =
        error instanceof InvalidRequest ? [400, 'invalid_request_error'] : [500, 'api_error']
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ type: 'error', error: { type, message: String(error) } }))
    })
  })
  if (where === 'loopback') server.listen(0, '127.0.0.1')
  else server.listen(where.socket)
  await once(server, 'listening')
  const address = server.address()
  return {
    requests,
    url: typeof address === 'object' && address ? `http://127.0.0.1:${address.port}` : 'http://localhost',
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      if (where !== 'loopback') rmSync(where.socket, { force: true })
    },
  }
}

let counter = 0

function send(response: ServerResponse, request: z.infer<typeof requestSchema>, reply: ModelReply): void {
  const content = [
    ...(reply.text === undefined ? [] : [{ type: 'text', text: reply.text }]),
    ...(reply.calls ?? []).map(({ name, input }) => ({
      type: 'tool_use',
      id: `toolu_${String(++counter).padStart(6, '0')}`,
      name,
      input,
    })),
  ]
  const message = {
    id: `msg_${String(++counter).padStart(6, '0')}`,
    type: 'message',
    role: 'assistant',
    model: request.model,
    content,
    stop_reason: reply.calls?.length ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 10 },
  }
  if (!request.stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const event = (data: { type: string; [field: string]: unknown }) =>
    response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
  event({ type: 'message_start', message: { ...message, content: [], stop_reason: null } })
  content.forEach((block, index) => {
    const isText = block.type === 'text'
    event({
      type: 'content_block_start',
      index,
      content_block: isText ? { type: 'text', text: '' } : { ...block, input: {} },
    })
    event({
      type: 'content_block_delta',
      index,
      delta:
        'input' in block
          ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
          : { type: 'text_delta', text: block.text },
    })
    event({ type: 'content_block_stop', index })
  })
  event({
    type: 'message_delta',
    delta: { stop_reason: message.stop_reason, stop_sequence: null },
    usage: { output_tokens: 10 },
  })
  event({ type: 'message_stop' })
  response.end()
}
