import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { generate } from './model-apis/generate.ts'
import { messages } from './model-apis/messages.ts'
import { completions, responses } from './model-apis/openai.ts'
import type { ApiFormat, ApiName, Failure, ModelReply, ReadRequest, Said } from './model-apis/types.ts'

export type { ApiName, Failure, ModelReply } from './model-apis/types.ts'

/**
 * A stand-in for four model APIs at once, each at its own paths: Anthropic's Messages, OpenAI's Responses and Chat
 * Completions, and Google's generateContent. It is written from their published documentation; none of the vendors has
 * answered here. The test says what the model answers, or how the API fails. Like the vendors, it refuses a conversation
 * in which a tool call has no result.
 */
export interface ModelApis {
  /** in order; listing models is not among them */
  readonly requests: readonly ModelApiRequest[]
  /** where it listens on loopback */
  readonly url: string
  close(): Promise<void>
}

export interface ModelApiRequest extends ReadRequest {
  api: ApiName
  path: string
  headers: IncomingMessage['headers']
  /** as it was sent */
  body: Readonly<Record<string, unknown>>
  /** fires when whoever asked hangs up before the answer is complete */
  abandoned: AbortSignal
}

export type ScriptedModel = (
  request: ModelApiRequest,
  index: number,
) => ModelReply | Failure | Promise<ModelReply | Failure>

const formats: readonly ApiFormat[] = [messages, responses, completions, generate]
/** what `GET /v1/models` and `GET /v1beta/models` list, unless the test says otherwise */
const listed = ['stand-in']

export async function serveModelApis(
  model: ScriptedModel,
  options: { socket?: string; port?: number; models?: readonly string[] } = {},
): Promise<ModelApis> {
  const requests: ModelApiRequest[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '/'
    const body = await bodyOf(request)
    const models = options.models ?? listed
    const found = request.method === 'GET' ? listing(path, request.headers, models) : undefined
    if (found) return json(response, 200, found)
    const format = request.method === 'POST' ? formats.find(one => one.path.test(path)) : undefined
    if (!format) return json(response, 404, { error: { message: `There is nothing at ${path}.` } })
    const abandoned = new AbortController()
    response.on('close', () => {
      if (!response.writableFinished) abandoned.abort()
    })
    const read = format.read(body, path)
    const problem = problemIn(read.said)
    if (problem !== undefined) return fail(format, response, { status: 400, message: problem })
    const { headers } = request
    requests.push({ ...read, api: format.name, path, headers, body, abandoned: abandoned.signal })
    const asked = requests.at(-1)
    if (asked) await send(format, read, response, await model(asked, requests.length - 1))
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      if (!response.headersSent) json(response, 500, { error: { message: String(error) } })
      else response.destroy()
    })
  })
  if (options.socket === undefined) server.listen(options.port ?? 0, '127.0.0.1')
  else server.listen(options.socket)
  await once(server, 'listening')
  const address = server.address()
  return {
    requests,
    url: typeof address === 'object' && address ? `http://127.0.0.1:${address.port}` : 'http://localhost',
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      if (options.socket !== undefined) rmSync(options.socket, { force: true })
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

const json = (response: ServerResponse, status: number, body: object, headers = {}): void =>
  void response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body))

/** Undefined: there is nothing there. */
function listing(path: string, headers: IncomingMessage['headers'], models: readonly string[]) {
  if (path.startsWith('/v1beta/models')) {
    const supportedGenerationMethods = ['generateContent']
    return {
      models: models.map(name => ({
        name: `models/${name}`,
        displayName: name,
        inputTokenLimit: 128_000,
        supportedGenerationMethods,
      })),
    }
  }
  if (!path.startsWith('/v1/models')) return undefined
  if (headers['anthropic-version'] !== undefined)
    return { data: models.map(id => ({ type: 'model', id, display_name: id })), has_more: false }
  return { object: 'list', data: models.map(id => ({ id, object: 'model', owned_by: 'stand-in' })) }
}

async function send(
  format: ApiFormat,
  { model, stream }: ReadRequest,
  response: ServerResponse,
  reply: ModelReply | Failure,
): Promise<void> {
  if (typeof reply === 'object' && 'status' in reply) return fail(format, response, reply)
  if (reply === 'silence') return
  if (typeof reply !== 'object') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (reply === 'garbage') return void response.end('data: {"this is": not JSON\n\n')
    const begun = format.events(model, { text: 'Half an answer, and then' }).slice(0, -2)
    response.write(begun.join(''), () => response.destroy())
    return
  }
  if (!stream) return json(response, 200, format.whole(model, reply))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const events = format.events(model, reply)
  const middle = Math.ceil(events.length / 2)
  for (const event of events.slice(0, middle)) response.write(event)
  await reply.hold
  for (const event of events.slice(middle)) response.write(event)
  response.end()
}

function fail(
  format: ApiFormat,
  response: ServerResponse,
  { status, message = `The stand-in answers ${status}.`, retryAfter }: Exclude<Failure, string>,
): void {
  json(response, status, format.error(status, message), {
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  })
}

/** What all four vendors answer with 400. */
function problemIn(said: readonly Said[]): string | undefined {
  if (said.length === 0) return 'There are no messages.'
  let open = new Set<string>()
  for (const { role, calls, results } of said) {
    if (role === 'assistant') {
      if (open.size > 0) return `These tool calls have no result: ${[...open].join(', ')}`
      open = new Set(calls.map(({ id }) => id))
    }
    for (const id of results) if (!open.delete(id)) return `There is no tool call before the result ${id}.`
    if (role === 'user' && results.length === 0 && open.size > 0)
      return `These tool calls have no result: ${[...open].join(', ')}`
  }
  return open.size > 0 ? `These tool calls have no result: ${[...open].join(', ')}` : undefined
}
