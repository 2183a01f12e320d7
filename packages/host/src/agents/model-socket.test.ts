import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { allowedPath, type ModelSocketOptions, serveModel } from './model-socket.ts'
import type { ModelUsage } from './model-usage.ts'
import { until } from './sandboxes/child.ts'

const isRoot = process.getuid?.() === 0
const key = 'sk-of-the-host'

interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

/** A model API of the test's own, and a socket before it. */
async function rig(
  answer: (request: Received, response: ServerResponse) => void,
  change: Partial<ModelSocketOptions> = {},
) {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-model-'))
  const received: Received[] = []
  const upstream = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of incoming) chunks.push(chunk)
    } catch (error) {
      if (error instanceof Error) return
    }
    const { method = '', url = '', headers } = incoming
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    answer({ method, url, headers, body: '' }, response)
  })
  upstream.listen(0, '127.0.0.1')
  await until(5000, () => upstream.listening)
  const address = upstream.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const usage: ModelUsage[] = []
  // Longer than the kernel takes for a socket.
  const directory = join(home, 'a'.repeat(100), 'run')
  const socket = await serveModel({
    directory,
    owner: isRoot ? { uid: 1000, gid: 1000 } : undefined,
    url: `http://127.0.0.1:${port}/base`,
    key,
    onUsage: one => usage.push(one),
    ...change,
  })
  onTestFinished(async () => {
    await socket.close()
    upstream.closeAllConnections()
    upstream.close()
    rmSync(home, { recursive: true, force: true })
  })
  // A client, too, has only a short path to give.
  symlinkSync(directory, join(home, 's'))
  return { socket, directory, path: join(home, 's', 'model.sock'), usage, received, upstream, port }
}

interface Reply {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

function call(socketPath: string, options: RequestOptions, body?: string | Buffer): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, host: 'localhost', ...options }, async response => {
      let text = ''
      try {
        for await (const chunk of response) text += chunk
      } catch (error) {
        return reject(error)
      }
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const post = (path: string, headers: RequestOptions['headers'] = {}) => ({ method: 'POST', path, headers })

test('a request goes to the model API with the host’s key in place of the sandbox’s, and nothing of the connection', async () => {
  const { path, received } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'a=b', 'request-id': 'r1' })
    response.end('{"ok":true}')
  })
  const reply = await call(
    path,
    post('/v1/messages?beta=true', {
      'x-api-key': 'placeholder',
      'anthropic-version': '2023-06-01',
      cookie: 'a=b',
      connection: 'x-private',
      'x-private': 'yes',
      'proxy-authorization': 'Basic x',
    }),
    '{"model":"m"}',
  )
  expect(reply).toMatchObject({ status: 200, body: '{"ok":true}', headers: { 'request-id': 'r1' } })
  expect(reply.headers['set-cookie']).toBeUndefined()
  expect(received[0]).toMatchObject({
    method: 'POST',
    url: '/base/v1/messages?beta=true',
    body: '{"model":"m"}',
  })
  const headers = received[0]?.headers ?? {}
  expect(headers).toMatchObject({
    'x-api-key': key,
    'anthropic-version': '2023-06-01',
    'accept-encoding': 'identity',
  })
  for (const name of ['authorization', 'cookie', 'x-private', 'proxy-authorization'])
    expect(headers).not.toHaveProperty(name)
  await call(path, post('/v1/messages', { authorization: 'Bearer placeholder' }), '{}')
  expect(received[1]?.headers.authorization).toBe(`Bearer ${key}`)
  expect(received[1]?.headers['x-api-key']).toBeUndefined()
})

test('the socket is the sandbox’s user’s alone, and its directory is the host’s', async () => {
  const { directory } = await rig((_request, response) => response.end())
  const socket = statSync(join(directory, 'model.sock'))
  expect(socket.mode & 0o777).toBe(0o600)
  if (isRoot) expect(socket.uid).toBe(1000)
  expect(statSync(directory).uid).toBe(process.getuid?.())
})

test('only GET and POST below /v1/ are forwarded', async () => {
  const { path, received } = await rig((_request, response) => response.end('{}'))
  for (const url of [
    '/',
    '/v1',
    '/v2/x',
    '/v1/../admin',
    '/v1/%2e%2e/admin',
    '/v1//x',
    'http://evil.example/v1/x',
  ])
    expect((await call(path, post(url))).status, url).toBe(404)
  expect((await call(path, { method: 'DELETE', path: '/v1/files/1' })).status).toBe(405)
  expect((await call(path, { method: 'GET', path: '/v1/models' })).status).toBe(200)
  expect(received).toHaveLength(1)
})

test.each([
  ['/v1/messages', '/v1/messages'],
  ['/v1/messages?a=/../b', '/v1/messages?a=/../b'],
  ['/v1/a%2Fb', undefined],
  ['/v1/a\\..\\b', undefined],
  ['/v1/./x', undefined],
  ['//v1/x', undefined],
  ['/v1/', undefined],
])('the path %s becomes %s', (path, expected) => {
  expect(allowedPath(path)).toBe(expected)
})

test('neither CONNECT nor an upgrade opens a way out', async () => {
  const { path, port, received } = await rig((_request, response) => response.end('{}'))
  for (const text of [
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  ]) {
    const said = await new Promise<string>(resolve => {
      let answer = ''
      const socket = connect(path, () => socket.write(text))
      socket.on('data', chunk => {
        answer += chunk
      })
      socket.on('close', () => resolve(answer))
    })
    expect(said).toBe('')
  }
  expect(received).toHaveLength(0)
})

const events = [
  'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":11,"output_tokens":1}}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"message_delta ü"}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":15}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":42}}\n\n',
]

test('a stream passes event by event, and its usage is counted', async () => {
  let next = () => {}
  const { path, usage } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const left = Buffer.from(events.join(''))
    response.write(left.subarray(0, 150))
    // Cut in the middle of a line and of a character; the rest only after the first part has arrived.
    next = () => {
      response.write(left.subarray(150, left.indexOf('ü') + 1))
      setTimeout(() => response.end(left.subarray(left.indexOf('ü') + 1)), 5)
    }
  })
  const text = await new Promise<string>((resolve, reject) => {
    const sent = request({ socketPath: path, ...post('/v1/messages') }, response => {
      let all = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        if (all === '') next()
        all += chunk
      })
      response.on('end', () => resolve(all))
    })
    sent.on('error', reject)
    sent.end('{"stream":true}')
  })
  expect(text).toBe(events.join(''))
  await until(2000, () => usage.length === 1)
  expect(usage).toEqual([{ model: 'claude-x', inputTokens: 20, outputTokens: 42 }])
})

test('the usage of a document is counted, and an answer without any costs nothing', async () => {
  const bodies = [
    '{"model":"claude-x","usage":{"input_tokens":3,"output_tokens":4}}',
    'not json',
    '{"data":[]}',
  ]
  const { path, usage } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(bodies.shift())
  })
  for (let i = 0; i < 3; i++) await call(path, post('/v1/messages'), '{}')
  await until(2000, () => usage.length === 3)
  expect(usage).toEqual([
    { model: 'claude-x', inputTokens: 3, outputTokens: 4 },
    { model: '', inputTokens: 0, outputTokens: 0 },
    { model: '', inputTokens: 0, outputTokens: 0 },
  ])
})

test('a request that is too large is refused, also when its size was not told', async () => {
  const { path, received } = await rig((_request, response) => response.end('{}'), {
    limits: { requestBytes: 1000 },
  })
  const large = Buffer.alloc(5000, 'x')
  expect((await call(path, post('/v1/messages', { 'content-length': 5000 }), large)).status).toBe(413)
  expect((await call(path, post('/v1/messages', { 'transfer-encoding': 'chunked' }), large)).status).toBe(413)
  expect(received.filter(({ body }) => body.length > 1000)).toEqual([])
})

test('more at once than allowed are refused', async () => {
  const waiting: ServerResponse[] = []
  const { path } = await rig((_request, response) => void waiting.push(response), {
    limits: { atOnce: 2 },
  })
  const two = [call(path, post('/v1/messages'), '{}'), call(path, post('/v1/messages'), '{}')]
  await until(5000, () => waiting.length === 2)
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(429)
  for (const response of waiting) response.end('{}')
  expect((await Promise.all(two)).map(({ status }) => status)).toEqual([200, 200])
})

test('an agent that goes away takes its request with it', async () => {
  let aborted = false
  const { path, received } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: ping\n\n')
    response.on('close', () => {
      aborted = true
    })
  })
  const sent = request({ socketPath: path, ...post('/v1/messages') }, response => {
    response.on('error', () => {})
    response.once('data', () => sent.destroy())
  })
  sent.on('error', () => {})
  sent.end('{}')
  expect(await until(5000, () => aborted)).toBe(true)
  expect(received).toHaveLength(1)
})

test('a stream that breaks off is not made to look complete', async () => {
  const { path } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: ping\n\n')
    setTimeout(() => response.destroy(), 20)
  })
  await expect(call(path, post('/v1/messages'), '{}')).rejects.toThrow()
})

test('a model API that is not there is told without saying where it is or with which key', async () => {
  const { path } = await rig(() => {}, { url: 'http://127.0.0.1:1' })
  const reply = await call(path, post('/v1/messages'), '{}')
  expect(reply.status).toBe(502)
  expect(JSON.parse(reply.body)).toEqual({
    type: 'error',
    error: { type: 'api_error', message: 'The host could not reach the model API.' },
  })
})

test('a model that says nothing is given up', async () => {
  const { path } = await rig(() => {}, { limits: { silenceMs: 50 } })
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(502)
})

test('closing ends what is under way and removes the directory', async () => {
  const { path, directory, socket, received } = await rig(() => {})
  const open = call(path, post('/v1/messages'), '{}').catch((error: Error) => error)
  await until(5000, () => received.length === 1)
  await socket.close()
  expect(await open).toBeInstanceOf(Error)
  expect(existsSync(directory)).toBe(false)
  await socket.close()
})
