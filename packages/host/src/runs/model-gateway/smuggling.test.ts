import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createRandom, type Random } from '../../../../testing/src/random.ts'
import { until } from '../../base/pause.ts'
import { serveModel } from './socket.ts'

/**
 * Raw bytes into the socket of a run, and an upstream that keeps every byte it receives. It is the worst upstream there
 * can be: it answers whatever looks like a request, keeps connections open, and repeats in its answer all that it got.
 */
const key = 'sk-of-the-host-0123456789'
const crlf = '\r\n'

interface Rig {
  /** what each connection to the upstream carried */
  connections: string[]
  /** what came back until the gateway closed the connection, or nothing happened on it for so long */
  send(raw: string | readonly string[], idleMs?: number): Promise<string>
  close(): Promise<void>
}

async function rig(): Promise<Rig> {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-raw-'))
  const connections: string[] = []
  const open = new Set<Socket>()
  const upstream = createServer(socket => {
    const index = connections.push('') - 1
    let answered = 0
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => {})
    socket.on('data', chunk => {
      const all = (connections[index] ?? '') + chunk.toString('latin1')
      connections[index] = all
      for (let end = endOfRequest(all, answered); end !== -1; end = endOfRequest(all, answered)) {
        answered = end
        const body = JSON.stringify({ received: all })
        socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nset-cookie: k=${key}\r\nx-echo: ${key}\r\nconnection: keep-alive\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        )
      }
    })
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const address = upstream.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const gateway = await serveModel({
    directory: join(home, 'run'),
    owner: undefined,
    url: `http://127.0.0.1:${port}/base`,
    key,
    onUsage: () => {},
    limits: { requestBytes: 20_000 },
  })
  const path = join(home, 'run', 'model.sock')
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await gateway.close()
    await until(5000, () => open.size === 0)
    upstream.close()
    rmSync(home, { recursive: true, force: true })
  }
  onTestFinished(close)
  return {
    connections,
    close,
    send: (raw, idleMs = 0) =>
      new Promise(resolve => {
        const pieces = typeof raw === 'string' ? [raw] : raw
        let heard = ''
        const socket = connect(path, async () => {
          for (const piece of pieces) {
            socket.write(piece, 'latin1')
            await new Promise(setImmediate)
          }
        })
        socket.setTimeout(idleMs, () => socket.destroy())
        socket.on('data', chunk => {
          heard += chunk.toString('latin1')
        })
        socket.on('error', () => {})
        socket.on('close', () => resolve(heard))
      }),
  }
}

/** where a request ends that begins at this place, for an upstream that takes what it gets; -1: there is none */
function endOfRequest(all: string, from: number): number {
  const head = all.indexOf(`${crlf}${crlf}`, from)
  if (head === -1) return -1
  const length = Number(/content-length: *(\d+)/i.exec(all.slice(from, head))?.[1] ?? 0)
  const end = head + 4 + length
  return end <= all.length ? end : -1
}

const names =
  /^(host|accept|accept-encoding|anthropic-version|anthropic-beta|openai-beta|user-agent|x-app|x-stainless-[a-z-]+|content-type|content-length|connection|x-api-key|authorization): [\x20-\x7e]*$/
const model = '[\\w.@-]+'
const paths = {
  POST: `messages(/count_tokens)?|responses|chat/completions|models/${model}:(generateContent|streamGenerateContent|countTokens)`,
  GET: `models(/${model})?`,
}
const parameter = '(beta|limit|after_id|before_id|alt)=[\\w.:-]+'
const lines = Object.entries(paths).map(
  ([method, path]) =>
    new RegExp(`^${method} /base/v1/(${path})(\\?${parameter}(&${parameter})*)? HTTP/1\\.1$`),
)

/** The request that a connection carried, if it is exactly one and of the form that we make; otherwise a complaint. */
function meant(bytes: string): { line: string; body: string } | string {
  const at = bytes.indexOf(`${crlf}${crlf}`)
  if (at === -1) return 'no end of the headers'
  const [line = '', ...headers] = bytes.slice(0, at).split(crlf)
  const body = bytes.slice(at + 4)
  if (!lines.some(known => known.test(line))) return `the line ${line}`
  const lower = headers.map(header => header.replace(/^[^:]*/, name => name.toLowerCase()))
  const odd = lower.find(header => !names.test(header))
  if (odd !== undefined) return `the header ${odd}`
  const fields = lower.map(header => header.split(':')[0])
  if (new Set(fields).size !== fields.length) return `a header twice: ${fields.join()}`
  if (lower.filter(header => header.includes(key)).length !== 1) return 'the key is not there once'
  if (!lower.includes('connection: close')) return 'the connection is kept'
  const length = lower.find(header => header.startsWith('content-length:'))
  if (line.startsWith('GET') && (length !== undefined || body !== '')) return 'a GET with a body'
  if (line.startsWith('POST') && length !== `content-length: ${body.length}`)
    return `${length}, not ${body.length}`
  if (body.includes(key)) return 'the key is in the body'
  return { line: line.replace(' HTTP/1.1', '').replace('/base', ''), body }
}

const get = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n'
const post = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\n'
const generate = (query: string) => `POST /v1/models/m1:streamGenerateContent${query} HTTP/1.1\r\nHost: x\r\n`
/** What an attacker would have the upstream read as a request of its own: the next one, with its key, is its body. */
const hidden = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n'
const size = hidden.length.toString(16)
const chunked = `${size}\r\n${hidden}\r\n0\r\n\r\n`
/** the same within a body that may be sent, to each path that takes one */
const wrappedFor: Readonly<Record<string, string>> = {
  '/v1/messages': JSON.stringify({ system: hidden }),
  '/v1/messages/count_tokens': JSON.stringify({ system: hidden }),
  '/v1/responses': JSON.stringify({ instructions: hidden }),
  '/v1/chat/completions': JSON.stringify({ user: hidden }),
  '/v1/models/m1:generateContent': JSON.stringify({ systemInstruction: { parts: [{ text: hidden }] } }),
  '/v1/models/m1:streamGenerateContent': JSON.stringify({ contents: [{ parts: [{ text: hidden }] }] }),
  '/v1/models/m1:countTokens': JSON.stringify({ contents: [{ parts: [{ text: hidden }] }] }),
}
const wrapped = wrappedFor['/v1/messages'] ?? ''
const asked = (line: string, body = '') => ({ line, body })

test.each<[string, string | readonly string[], readonly object[]]>([
  ...Object.entries(wrappedFor).map(([path, body]): [string, string, readonly object[]] => [
    `a request within a body to ${path}`,
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    [asked(`POST ${path}`, body)],
  ]),
  ...Object.keys(wrappedFor).map((path): [string, string, readonly object[]] => [
    `a request as the body to ${path}`,
    `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
    [],
  ]),
  [
    'the parameters and headers that OpenAI’s and Google’s clients send',
    `${generate('?alt=sse&beta=true')}Accept: text/event-stream, */*;q=0.1\r\nOpenAI-Beta: responses=v1, a\r\nContent-Length: 2\r\n\r\n{}`,
    [asked('POST /v1/models/m1:streamGenerateContent?alt=sse&beta=true', '{}')],
  ],
  ['a parameter that is not known', `${generate('?key=mine')}Content-Length: 2\r\n\r\n{}`, []],
  ['a line within a parameter', `${generate('?alt=sse%0d%0a')}Content-Length: 2\r\n\r\n{}`, []],
  ['a request within a parameter', `${generate(`?alt=${hidden}`)}Content-Length: 2\r\n\r\n{}`, []],
  ['a method that no model has', 'POST /v1/models/m1:deleteModel HTTP/1.1\r\nHost: x\r\n\r\n', []],
  [
    'a header within Accept',
    `${generate('')}Accept: text/plain\rX-Api-Key: c\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  [
    'a folded OpenAI-Beta',
    `${generate('')}OpenAI-Beta: a\r\n\tX-Api-Key: c\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  [
    'an OpenAI-Beta that has the form of another header',
    `${generate('')}OpenAI-Beta: a, x-api-key: c\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  ['a request', `${post}Content-Length: 2\r\n\r\n{}`, [asked('POST /v1/messages', '{}')]],
  ['a GET', `${get}\r\n`, [asked('GET /v1/models')]],
  [
    'a body in pieces',
    [`${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{`, '\r\n1\r', '\n}\r\n0\r\n\r\n'],
    [asked('POST /v1/messages', '{}')],
  ],
  [
    'a request within a body',
    `${post}Content-Length: ${wrapped.length}\r\n\r\n${wrapped}`,
    [asked('POST /v1/messages', wrapped)],
  ],
  ['a request as the body', `${post}Transfer-Encoding: chunked\r\n\r\n${chunked}`, []],
  [
    'a body that two parsers read differently',
    `${post}Content-Length: 22\r\n\r\n{"model":1, "model":2}`,
    [asked('POST /v1/messages', '{"model":2}')],
  ],
  ['a GET with Transfer-Encoding', `${get}Transfer-Encoding: chunked\r\n\r\n${chunked}`, []],
  [
    'a GET with Transfer-Encoding that Connection names',
    `${get}Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
    [],
  ],
  ['a GET with a length', `${get}Content-Length: ${hidden.length}\r\n\r\n${hidden}`, []],
  [
    'a GET with a length that Connection names',
    `${get}Connection: content-length\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    [],
  ],
  [
    'a GET with an upgrade and more',
    `${get}Connection: upgrade, transfer-encoding\r\nUpgrade: h2c\r\n\r\n${hidden}`,
    [],
  ],
  [
    'a POST whose length Connection names',
    `${post}Connection: content-length, x-api-key\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    [],
  ],
  [
    'a POST whose Transfer-Encoding Connection names',
    `${post}Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
    [],
  ],
  [
    'a length and Transfer-Encoding',
    `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
    [],
  ],
  [
    'Transfer-Encoding and a length',
    `${post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${chunked}`,
    [],
  ],
  ['two lengths', `${post}Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}${hidden}`, []],
  ['two lengths in one header', `${post}Content-Length: 2, 60\r\n\r\n{}${hidden}`, []],
  ['a length with a sign', `${post}Content-Length: +2\r\n\r\n{}`, []],
  ['a length in hexadecimal', `${post}Content-Length: 0x2\r\n\r\n{}`, []],
  ['a negative length', `${post}Content-Length: -1\r\n\r\n{}`, []],
  ['a length beyond all numbers', `${post}Content-Length: 18446744073709551618\r\n\r\n{}`, []],
  ['another transfer encoding', `${post}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}`, []],
  ['a list of transfer encodings', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n${chunked}`, []],
  [
    'two Transfer-Encodings',
    `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunked}`,
    [],
  ],
  ['a transfer encoding with a tab', `${post}Transfer-Encoding:\x0bchunked\r\n\r\n${chunked}`, []],
  ['a space before the colon', `${post}Transfer-Encoding : chunked\r\n\r\n${chunked}`, []],
  ['a folded header', `${post}X-A: b\r\n Content-Length: 60\r\nContent-Length: 2\r\n\r\n{}`, []],
  [
    'a folded header that is forwarded',
    `${post}User-Agent: b\r\n\tx-api-key: c\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  ['chunk extensions', `${post}Transfer-Encoding: chunked\r\n\r\n2;a="\r\n${hidden}"\r\n{}\r\n0\r\n\r\n`, []],
  [
    'a harmless chunk extension',
    `${post}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n`,
    [asked('POST /v1/messages', '{}')],
  ],
  [
    'a chunk of more than it says',
    `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n${hidden}\r\n0\r\n\r\n`,
    [],
  ],
  [
    'a chunk size beyond all numbers',
    `${post}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n`,
    [],
  ],
  [
    'trailers',
    `${post}Transfer-Encoding: chunked\r\nTrailer: x-api-key\r\n\r\n2\r\n{}\r\n0\r\nx-api-key: mine\r\nX-A: b\r\n\r\n`,
    [asked('POST /v1/messages', '{}')],
  ],
  ['bare line feeds', 'POST /v1/messages HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}', []],
  [
    'a bare line feed in a header',
    `${post}X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  [
    'a bare carriage return in a header',
    `${post}User-Agent: b\rX-Api-Key: c\r\nContent-Length: 2\r\n\r\n{}`,
    [],
  ],
  ['a zero byte in a header', `${post}User-Agent: b\0c\r\nContent-Length: 2\r\n\r\n{}`, []],
  ['an absolute address', 'GET http://example.org/v1/models HTTP/1.1\r\nHost: x\r\n\r\n', []],
  ['an authority', 'GET //example.org/v1/models HTTP/1.1\r\nHost: x\r\n\r\n', []],
  [
    'a path with another version',
    'GET /v1/models HTTP/1.1\r\nX: y HTTP/1.1\r\nHost: x\r\n\r\n',
    [asked('GET /v1/models')],
  ],
  ['a path out of the API', 'GET /v1/models/../../admin HTTP/1.1\r\nHost: x\r\n\r\n', []],
  ['HTTP/0.9', 'GET /v1/models\r\n\r\n', []],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', []],
  ['CONNECT', 'CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n', []],
  ['no Host', 'GET /v1/models HTTP/1.1\r\n\r\n', []],
  ['an expectation', `${post}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`, []],
  ['another expectation', `${post}Expect: the-unexpected\r\nContent-Length: 2\r\n\r\n{}`, []],
  ['requests in a row', `${get}\r\n${get}\r\n${post}Content-Length: 2\r\n\r\n{}`, [asked('GET /v1/models')]],
  ['a request and rubbish', `${get}X-A: b\r\n\r\n\0\0\0`, [asked('GET /v1/models')]],
  ['half a line', 'POST /v1/mess', []],
  ['half the headers', `${post}Content-Le`, []],
  ['half a body', `${post}Content-Length: 10\r\n\r\n{}`, []],
  ['half a body in pieces', `${post}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`, []],
  ['huge headers', `${post}X-A: ${'b'.repeat(100_000)}\r\nContent-Length: 2\r\n\r\n{}`, []],
  ['many headers', `${post}${'X-A: b\r\n'.repeat(10_000)}Content-Length: 2\r\n\r\n{}`, []],
  [
    'a body that is too large',
    `${post}Transfer-Encoding: chunked\r\n\r\n7530\r\n${'x'.repeat(30_000)}\r\n0\r\n\r\n`,
    [],
  ],
  [
    'a key of its own',
    `${post}X-Api-Key: mine\r\nAuthorization: Bearer mine\r\nCookie: a=b\r\nContent-Length: 2\r\n\r\n{}`,
    [asked('POST /v1/messages', '{}')],
  ],
])('%s', async (title, raw, expected) => {
  const { connections, send, close } = await rig()
  // Half a request is waited for; everything else ends the connection.
  const heard = await send(raw, title.startsWith('half') ? 40 : 0)
  // Whatever the first connection has caused was caused before this one is answered.
  expect(await send('GET /v1/models/fence HTTP/1.1\r\nHost: x\r\n\r\n')).toContain('200 OK')
  await close()
  expect(connections.map(meant)).toEqual([...expected, asked('GET /v1/models/fence')])
  expect(heard).not.toContain(key)
})

test('whatever bytes a sandbox sends, the API gets whole requests of ours and the sandbox never the key', async () => {
  const seed = Number(process.env.HATCHWAY_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const random = createRandom(seed)
  const { connections, send, close } = await rig()
  const heard: string[] = []
  for (let round = 0; round < 40; round++) {
    const raws = Array.from({ length: 15 }, () => rawRequest(random))
    heard.push(...(await Promise.all(raws.map(raw => send(inPieces(raw, random), 40)))))
  }
  await close()
  const complaints = connections.map(meant).filter(found => typeof found === 'string')
  expect({ seed, complaints }).toEqual({ seed, complaints: [] })
  expect({ seed, leaked: heard.filter(one => one.includes(key)) }).toEqual({ seed, leaked: [] })
  // A test in which everything is refused would prove nothing.
  const forwarded = connections
    .map(meant)
    .map(one => (typeof one === 'string' ? one : one.line.split('?')[0]))
  expect({ seed, forwarded: forwarded.length > 20 && new Set(forwarded).size > 4 }).toEqual({
    seed,
    forwarded: true,
  })
})

/** Mostly well formed, with a few things wrong that fit each other. */
function rawRequest(random: Random): string {
  const { pick, chance, below } = random
  const eol = () => (chance(0.97) ? crlf : pick(['\n', '\r', '\r\r\n', ' \r\n', '\0\r\n']))
  const method = chance(0.85)
    ? pick(['POST', 'GET'])
    : pick(['HEAD', 'PUT', 'post', 'CONNECT', 'TRACE', ' GET'])
  const known = pick(method === 'GET' ? ['/v1/models', '/v1/models/m1'] : Object.keys(wrappedFor))
  const path = chance(0.85)
    ? known + pick(['', '', '?beta=true', '?alt=sse', '?alt=sse&beta=true'])
    : pick([
        '/v1/../x',
        '/v1/messages#x',
        'http://x/v1/models',
        '/v1/models/%2e%2e',
        '*',
        '/v1/messages?beta=%0d%0a',
        '/v1/m\xfc',
        '/v1/models/m1:generateContent#x',
        '/v1/models/../files:generateContent',
        '/v1/models/m1:generateContent?alt=',
        '/v1/models/m1:generateContent?alt=sse&key=mine',
        '/v1/models/m1:generateContent?alt=sse%20HTTP/1.1%0d%0a',
        '/v1/responses/r1/cancel',
        '/v1/chat/completions/../../files',
      ])
  const allowed = wrappedFor[known] ?? '{}'
  const body = chance(0.7)
    ? pick(['{}', allowed, ` ${allowed}${crlf}`])
    : Array.from({ length: below(4) }, () =>
        pick(['{}', hidden, `${get}\r\n`, '0\r\n\r\n', '\0', crlf]),
      ).join('')
  const headers = [
    ...(chance(0.95) ? ['Host: x'] : []),
    ...(method === 'POST' && chance(0.7)
      ? [`Content-Length: ${body.length + (chance(0.8) ? 0 : below(9) - 4)}`]
      : []),
    ...(chance(0.15)
      ? [
          pick([
            'Transfer-Encoding: chunked',
            'transfer-encoding:chunked',
            'Transfer-Encoding: Chunked',
            'Transfer-Encoding: xchunked',
            'Transfer-Encoding: chunked, identity',
            'Transfer_Encoding: chunked',
          ]),
        ]
      : []),
    ...(chance(0.2)
      ? [
          `Connection: ${pick(['close', 'keep-alive', 'content-length', 'transfer-encoding', 'x-api-key, host', 'upgrade'])}`,
        ]
      : []),
    ...(chance(0.2)
      ? [
          pick([
            'Expect: 100-continue',
            'Upgrade: websocket',
            'TE: trailers',
            'Trailer: x',
            'Content-Length: 5',
            ' folded: yes',
            'X-Api-Key: mine',
            'Authorization: Bearer mine',
            'User-Agent: a\tb',
            'User-Agent: \xfc',
            'Anthropic-Beta: a,b',
            'Anthropic-Beta: a\r\n\tb',
            'Accept: text/event-stream, */*;q=0.1',
            'Accept: a\tb',
            'Accept: a\r\n X-Api-Key: c',
            'OpenAI-Beta: responses=v1',
            'OpenAI-Beta: a, x-api-key: c',
            'OpenAI-Beta: a\r\n\tb',
            'Content-Type: text/plain',
            'X-Stainless-OS: Linux',
            'X-Stainless-A: b, x-api-key: c',
            'Proxy-Connection: x',
            ': x',
            'no colon',
            'a b: c',
          ]),
        ]
      : []),
  ]
  for (let i = headers.length - 1; i > 0; i--) {
    const other = below(i + 1)
    const moved = headers[i] ?? ''
    headers[i] = headers[other] ?? ''
    headers[other] = moved
  }
  const isChunked = headers.some(header => /transfer.encoding/i.test(header))
  const framed =
    isChunked && chance(0.8)
      ? `${body.length.toString(16)}${chance(0.1) ? pick([';a=b', ' ', '\t', ';\n', 'x']) : ''}${eol()}${body}${eol()}0${eol()}${chance(0.1) ? 'x-api-key: mine\r\n' : ''}${eol()}`
      : body
  const whole = `${method} ${path} HTTP/${chance(0.95) ? '1.1' : pick(['1.0', '0.9', '2.0'])}${eol()}${headers.map(header => header + eol()).join('')}${eol()}${framed}`
  const cut = chance(0.05) ? whole.slice(0, below(whole.length)) : whole
  const changed = chance(0.1) ? replaced(cut, below(cut.length + 1), String.fromCharCode(below(256))) : cut
  return chance(0.1) && changed.length < 5000 ? changed + rawRequest(random) : changed
}

const replaced = (text: string, at: number, by: string) => text.slice(0, at) + by + text.slice(at + 1)

function inPieces(raw: string, { chance, below }: Random): string[] {
  if (chance(0.7)) return [raw]
  const at = below(raw.length)
  return [raw.slice(0, at), raw.slice(at)]
}
