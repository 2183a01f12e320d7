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
import { until } from '../../base/pause.ts'
import { createSentTexts } from '../../sandboxes/sent-texts.ts'
import { type ModelSocketOptions, serveModel } from './socket.ts'
import type { ModelUsage } from './usage.ts'

const isRoot = process.getuid?.() === 0
const key = 'sk-of-the-host-0123456789'

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
    limits: { retryMs: [1, 1], ...change.limits },
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

const events = [
  'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":11,"output_tokens":1}}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"message_delta ü"}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":15}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":42}}\n\n',
]

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

test('neither CONNECT nor an upgrade opens a way out', async () => {
  const { path, port, received } = await rig((_request, response) => response.end('{}'))
  for (const text of [
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
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
  expect(usage).toEqual([{ model: 'claude-x', inputTokens: 20, outputTokens: 42, cachedTokens: 11 }])
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
    { model: 'claude-x', inputTokens: 3, outputTokens: 4, cachedTokens: 0 },
    { model: '', inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
    { model: '', inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  ])
})

test('a request that is too large is refused, also when its size was not told', async () => {
  const { path, received } = await rig((_request, response) => response.end('{}'), {
    limits: { requestBytes: 1000 },
  })
  const large = Buffer.alloc(5000, 'x')
  expect((await call(path, post('/v1/messages', { 'content-length': 5000 }), large)).status).toBe(413)
  expect((await call(path, post('/v1/messages', { 'transfer-encoding': 'chunked' }), large)).status).toBe(413)
  expect(received).toEqual([])
})

test('requests that are large together are refused, and their memory is free again once they are answered', async () => {
  const waiting: ServerResponse[] = []
  let isSlow = false
  const { path, received } = await rig(
    (_request, response) => void (isSlow ? waiting.push(response) : response.end('{}')),
    { limits: { requestBytes: 1000, heldBytes: 1500 } },
  )
  const large = Buffer.from(JSON.stringify({ model: 'x'.repeat(988) }))
  const half = request({ socketPath: path, ...post('/v1/messages', { 'content-length': 1000 }) })
  half.on('error', () => {})
  half.write(large.subarray(0, 1))
  // What is announced counts, whether it comes or not.
  let status = 200
  while (status === 200) ({ status } = await call(path, post('/v1/messages'), large))
  expect(status).toBe(429)
  isSlow = true
  half.end(large.subarray(1))
  await until(5000, () => waiting.length === 1)
  // It may have to be sent again.
  expect((await call(path, post('/v1/messages'), large)).status).toBe(429)
  for (const response of waiting) response.writeHead(200).write(' ')
  const second = call(path, post('/v1/messages'), large)
  await until(5000, () => waiting.length === 2)
  for (const response of waiting) response.end('{}')
  expect((await second).status).toBe(200)
  expect(received.every(({ body }) => body.length === 1000)).toBe(true)
})

test('a body in pieces of one byte is refused before it has cost much', async () => {
  const { path, received } = await rig((_request, response) => response.end('{}'))
  const head = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const said = await new Promise<string>(resolve => {
    let answer = ''
    const socket = connect(path, () => socket.write(`${head}${'1\r\nx\r\n'.repeat(100_000)}`))
    socket.on('data', chunk => {
      answer += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
  expect(said).toContain('413')
  expect(received).toEqual([])
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

test('an agent that goes away takes its stream with it, and what it has cost is counted', async () => {
  const delta = (text: string) =>
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`
  let aborted = false
  const { path, received, usage } = await rig((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(events[0] + delta('x'.repeat(4000)))
    response.on('close', () => {
      aborted = true
    })
  })
  let heard = ''
  const sent = request({ socketPath: path, ...post('/v1/messages') }, response => {
    response.on('error', () => {})
    response.on('data', chunk => {
      heard += chunk
      if (heard.length > 4000) sent.destroy()
    })
  })
  sent.on('error', () => {})
  sent.end('{}')
  expect(await until(5000, () => aborted && usage.length === 1)).toBe(true)
  expect(received).toHaveLength(1)
  // The end of the stream would have told the output; four bytes of text are about a token.
  expect(usage).toEqual([
    { model: 'claude-x', inputTokens: 20, outputTokens: expect.closeTo(1000, -2), cachedTokens: 11 },
  ])
})

test.each([
  [
    'a document',
    'application/json',
    '{"model":"claude-x","usage":{"input_tokens":3,"output_tokens":4}}',
    { model: 'claude-x', inputTokens: 3, outputTokens: 4, cachedTokens: 0 },
  ],
  [
    'a stream',
    'text/event-stream',
    events[0] ?? '',
    { model: 'claude-x', inputTokens: 20, outputTokens: 1, cachedTokens: 11 },
  ],
])('what it costs is counted for %s whose agent goes away before it begins', async (_, type, body, cost) => {
  let begin = () => {}
  const { path, received, usage } = await rig((_request, response) => {
    begin = () => {
      response.writeHead(200, { 'content-type': type })
      if (type === 'application/json') response.end(body)
      else response.write(body)
    }
  })
  const sent = request({ socketPath: path, ...post('/v1/messages') })
  sent.on('error', () => {})
  sent.end('{}')
  await until(5000, () => received.length === 1)
  sent.destroy()
  await new Promise(resolve => sent.once('close', resolve))
  begin()
  expect(await until(5000, () => usage.length === 1)).toBe(true)
  expect(usage).toEqual([cost])
})

test('an answer that nobody hears and that never says what it costs is ended', async () => {
  let aborted = false
  const { path, received } = await rig(
    (_request, response) => {
      response.on('close', () => {
        aborted = true
      })
    },
    { limits: { unheardMs: 20 } },
  )
  const sent = request({ socketPath: path, ...post('/v1/messages') })
  sent.on('error', () => {})
  sent.end('{}')
  await until(5000, () => received.length === 1)
  sent.destroy()
  expect(await until(5000, () => aborted)).toBe(true)
})

test.each([
  ['its agent has hung up', { unheardMs: 20 }],
  ['the model is silent for too long', { silenceMs: 50 }],
])('a request that is given up as %s does not count as nothing', async (_, limits) => {
  const { path, received, usage } = await rig(() => {}, { limits })
  const sent = request({ socketPath: path, ...post('/v1/chat/completions') })
  sent.on('error', () => {})
  const body = JSON.stringify({ metadata: { model: 'cheap' }, model: 'dear', user: 'x'.repeat(4000) })
  sent.end(body)
  await until(5000, () => received.length === 1)
  if ('unheardMs' in limits) sent.destroy()
  await until(5000, () => usage.length === 1)
  expect(usage).toMatchObject([{ model: 'dear', inputTokens: Math.ceil(body.length / 4) }])
  expect(usage[0]?.outputTokens).toBeGreaterThan(0)
})

test('a usage that cannot be stored disturbs nobody', async () => {
  const { path } = await rig((_request, response) => response.end('{}'), {
    onUsage() {
      throw new Error('the disk is full')
    },
  })
  for (let i = 0; i < 2; i++) expect((await call(path, post('/v1/messages'), '{}')).status).toBe(200)
})

test('an API that repeats what it received does not give the key away, however its answer is cut', async () => {
  const { path } = await rig((given, response) => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'request-id': `for ${given.headers['x-api-key']}`,
      'x-echo': key,
    })
    const body = JSON.stringify({ headers: given.headers, again: key + key, begin: key.slice(0, 9) })
    for (let i = 0; i < body.length; i += 7) response.write(body.slice(i, i + 7))
    response.end()
  })
  const reply = await call(path, post('/v1/messages'), '{}')
  const stars = '*'.repeat(key.length)
  expect(JSON.stringify(reply)).not.toContain(key)
  expect(JSON.parse(reply.body)).toMatchObject({
    headers: { 'x-api-key': stars },
    again: stars + stars,
    begin: key.slice(0, 9),
  })
})

test.each([
  ['a redirect', 307, { location: 'http://127.0.0.1:1/v1/messages' }],
  ['an encoding that was not asked for', 200, { 'content-encoding': 'gzip' }],
])('%s is not passed on', async (_, status, headers) => {
  const { path } = await rig((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end('{}')
  })
  const reply = await call(path, post('/v1/messages'), '{}')
  expect(reply.status).toBe(400)
  expect(reply.headers.location).toBeUndefined()
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
  // No client tries again after it: the gateway has.
  expect(reply.status).toBe(400)
  expect(JSON.parse(reply.body)).toEqual({
    type: 'error',
    error: { type: 'invalid_request_error', message: 'The host could not reach the model API.' },
  })
})

const errorOf = (type: string, message: string) => JSON.stringify({ type: 'error', error: { type, message } })

test.each([
  [200, '{}', undefined],
  [401, errorOf('authentication_error', 'invalid x-api-key'), { cause: 'key_refused' }],
  [404, errorOf('not_found_error', 'model: claude-x'), { cause: 'model_unknown', model: 'claude-x' }],
  [404, errorOf('not_found_error', 'model: no name, Host: send money'), { cause: 'model_unknown' }],
  [404, '<html>no such page</html>', { cause: 'unreachable' }],
  [400, errorOf('invalid_request_error', 'Your credit balance is too low'), { cause: 'no_credit' }],
  [400, errorOf('invalid_request_error', 'max_tokens is missing'), undefined],
])('the host learns from the answer %i %s', async (status, body, problem) => {
  const outcomes: unknown[] = []
  const { path } = await rig(
    (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(body)
    },
    { onOutcome: outcome => outcomes.push(outcome) },
  )
  expect(await call(path, post('/v1/messages'), '{}')).toMatchObject({ status, body })
  expect(outcomes).toEqual([problem])
})

test('after a refused key the run is refused at once, in a way after which no client tries again', async () => {
  const { path, received } = await rig((_request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(errorOf('authentication_error', 'invalid x-api-key'))
  })
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await call(path, post('/v1/messages'), '{}')).status)
  expect(statuses).toEqual([401, 400, 400])
  expect(received).toHaveLength(1)
})

test('an API that cannot be reached is tried again, and people hear of it before that', async () => {
  const outcomes: unknown[] = []
  let failures = 0
  const { path, received } = await rig(
    (_request, response) => {
      if (failures-- > 0) response.destroy()
      else response.end('{}')
    },
    { onOutcome: outcome => outcomes.push(outcome) },
  )
  const lost = { cause: 'unreachable', code: 'ECONNRESET' }
  failures = 2
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(200)
  expect(outcomes.splice(0)).toEqual([{ ...lost, isRetried: true }, { ...lost, isRetried: true }, undefined])
  failures = 3
  expect((await call(path, post('/v1/messages'), '{"stream":true}')).status).toBe(400)
  expect(outcomes).toEqual([{ ...lost, isRetried: true }, { ...lost, isRetried: true }, lost])
  // Each attempt says the same.
  expect(received.slice(-3).map(({ body }) => body)).toEqual(Array(3).fill('{"stream":true}'))
})

test.each([
  [429, { cause: 'rate_limited' }, /rate limit/],
  [529, { cause: 'failing', code: '529' }, /errors of its own/],
])(
  'an API that answers %i is asked three times, and people hear of it when it lasts',
  async (status, problem, words) => {
    const outcomes: unknown[] = []
    const { path, received } = await rig(
      (_request, response) => {
        response.writeHead(status)
        response.end()
      },
      { onOutcome: outcome => outcomes.push(outcome) },
    )
    const reply = await call(path, post('/v1/messages'), '{}')
    expect(reply).toMatchObject({ status: 400, body: expect.stringMatching(words) })
    expect(received).toHaveLength(3)
    expect(outcomes).toEqual([{ ...problem, isRetried: true }, problem])
  },
)

test('an API that wants to be left alone for long is not waited for', async () => {
  const { path, received } = await rig((_request, response) => {
    response.writeHead(429, { 'retry-after': '3600' })
    response.end()
  })
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(400)
  expect(received).toHaveLength(1)
})

test('an agent that hangs up during a pause is not asked for any more', async () => {
  const { path, received } = await rig(
    (_request, response) => {
      response.writeHead(503)
      response.end()
    },
    { limits: { retryMs: [100, 100] } },
  )
  const sent = request({ socketPath: path, ...post('/v1/messages') })
  sent.on('error', () => {})
  sent.end('{}')
  await until(5000, () => received.length === 1)
  sent.destroy()
  await until(300, () => received.length > 1)
  expect(received).toHaveLength(1)
})

test('where a limit is reached nothing is asked', async () => {
  const outcomes: unknown[] = []
  const reached = { cause: 'limit_reached', limit: 'The daily limit' } as const
  const { path, received } = await rig(() => {}, {
    mayAsk: () => reached,
    onOutcome: outcome => outcomes.push(outcome),
  })
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(400)
  expect([received, outcomes]).toEqual([[], [reached]])
})

test('a model that says nothing is given up', async () => {
  const { path } = await rig(() => {}, { limits: { silenceMs: 50 } })
  expect((await call(path, post('/v1/messages'), '{}')).status).toBe(400)
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

test('what the model sends with a tool is known before the agent has the answer', async () => {
  const sent = createSentTexts()
  const events = [
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'tool_use', id: 't', name: 'mcp__mdclaw__send_message', input: {} },
    },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: '{"text":"soon"}' },
    },
    { type: 'content_block_stop', index: 0 },
  ]
  const { path } = await rig(
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(events.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''))
    },
    { listen: sent.listen },
  )
  expect(await call(path, post('/v1/messages'), '{}')).toMatchObject({ status: 200 })
  expect(sent.take('soon')).toBe(true)
})
