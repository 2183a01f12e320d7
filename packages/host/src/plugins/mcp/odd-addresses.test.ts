import { once } from 'node:events'
import { pipeline, Readable } from 'node:stream'
import { createAdaptorServer } from '@hono/node-server'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { describe, expect, test } from 'vitest'
import { type Asked, serveHttp } from './testing/http-server.ts'
import { lend } from './testing/rig.ts'

/** Servers over HTTP that do not do what they should. */

const properly = () => false
const isCall = ({ message }: Asked) => message.method === 'tools/call'
const done = { content: [{ type: 'text', text: 'done' }] }
const calls = (seen: { message: Asked['message'] }[]) =>
  seen.filter(({ message }) => message.method === 'tools/call')

describe('a server that cannot be reached', () => {
  test('is down: the state says so, and when it is there it is found', async () => {
    const before = await serveHttp(properly)
    await before.close()
    const rig = lend({ url: before.url })
    await rig.until(({ text }) => text === 'It cannot be reached (ECONNREFUSED).')
    await serveHttp(properly, Number(new URL(before.url).port))
    await rig.up()
    expect(await rig.call('odd_write')).toEqual(done)
  })

  test('refuses the credentials', async () => {
    const { url } = await serveHttp(({ response }) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('no')
      return true
    })
    const rig = lend({ url })
    await rig.until(({ text }) => text === 'It does not accept the host’s credentials (HTTP 401).')
  })

  test('a variable for its headers is not there', async () => {
    const { url, seen } = await serveHttp(properly)
    const rig = lend({ url, headers: { authorization: { variable: 'NO_SUCH_KEY', prefix: 'Bearer ' } } })
    await rig.until(({ text }) => text.includes('no variable NO_SUCH_KEY'))
    expect(seen).toEqual([])
  })

  test('is not an MCP server: its page is not shown to anybody', async () => {
    const { url } = await serveHttp(({ response }) => {
      response.setHeader('content-type', 'text/html')
      response.end('<h1>secret page</h1>')
      return true
    })
    const rig = lend({ url })
    await rig.until(({ text }) => text.includes('cannot be talked to'))
    expect(rig.service.state?.().text).not.toContain('secret page')
  })
})

describe('headers', () => {
  const environment = { KEY: 'top-secret\n' }
  const headers = { authorization: { variable: 'KEY', prefix: 'Bearer ' }, 'x-team': 'blue' }

  test('go to the server with each request', async () => {
    const { url, seen } = await serveHttp(properly)
    const rig = lend({ url, headers }, {}, environment)
    await rig.up()
    await rig.call('odd_write')
    await rig.service.stop?.()
    expect(seen.map(({ method }) => method)).toContain('DELETE')
    for (const { headers } of seen)
      expect(headers).toMatchObject({ authorization: 'Bearer top-secret', 'x-team': 'blue' })
  })

  test.each([301, 302, 303, 307, 308])(
    'do not go along with a redirect %i to somebody else',
    async status => {
      const other = await serveHttp(properly)
      const { url } = await serveHttp(({ response }) => {
        response.writeHead(status, { location: `${other.url}/k-e-y?token=k-e-y` }).end()
        return true
      })
      const rig = lend({ url, headers }, {}, environment)
      // Of the address only the origin: its path may hold a key, and viewers read this.
      await rig.until(({ text }) =>
        text.startsWith(
          `It redirects to somewhere else.\nRedirect to ${new URL(other.url).origin} not followed.`,
        ),
      )
      expect(other.seen).toEqual([])
    },
  )

  test('nor when it redirects in the middle of things', async () => {
    const other = await serveHttp(properly)
    const { url } = await serveHttp(asked => {
      if (!isCall(asked)) return false
      asked.response.writeHead(307, { location: other.url }).end()
      return true
    })
    const rig = lend({ url, headers }, {}, environment)
    await rig.up()
    await expect(rig.call('odd_read')).rejects.toMatchObject({ code: 'service_failed' })
    expect(other.seen).toEqual([])
  })
})

describe('a server that fails at work', () => {
  test('has forgotten the session: a new one is made, and the call is done once', async () => {
    const server = await serveHttp(properly)
    const rig = lend({ url: server.url })
    await rig.up()
    server.forget()
    expect(await rig.call('odd_write')).toEqual(done)
    expect(server.seen.filter(({ message }) => message.method === 'initialize')).toHaveLength(2)
  })

  test('is gone: calls wait for it and are made when it is back', async () => {
    const server = await serveHttp(properly)
    const rig = lend({ url: server.url })
    await rig.up()
    await server.close()
    const reading = rig.call('odd_read')
    await rig.until(({ ok }) => !ok)
    const writing = rig.call('odd_write')
    const again = await serveHttp(properly, Number(new URL(server.url).port))
    expect(await Promise.all([reading, writing])).toEqual([done, done])
    expect(calls(again.seen)).toHaveLength(2)
  })

  test('answers with an error page: its number is told, not its content', async () => {
    const { url } = await serveHttp(asked => {
      if (!isCall(asked)) return false
      asked.response.writeHead(503).end('<h1>secret page</h1>')
      return true
    })
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_write')).rejects.toMatchObject({
      code: 'service_failed',
      message: 'The server odd answered with HTTP 503.',
    })
  })

  const breakOff = ({ response }: Asked) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: message\ndata: {"jsonrpc":"2.0","id"', () => response.destroy())
    return true
  }

  test('breaks off in the middle of an answer: a call that writes fails at once, and was made once', async () => {
    const { url, seen } = await serveHttp(asked => isCall(asked) && breakOff(asked))
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_write')).rejects.toMatchObject({
      code: 'service_failed',
      message:
        'The server odd broke off before its answer was whole. It may have been done or not: look before asking again.',
    })
    expect(calls(seen)).toHaveLength(1)
    expect(rig.service.state?.().ok).toBe(true)
  })

  test('breaks off in the middle of an answer: a call that reads is made again', async () => {
    let times = 0
    const { url, seen } = await serveHttp(asked => isCall(asked) && times++ === 0 && breakOff(asked))
    const rig = lend({ url })
    await rig.up()
    expect(await rig.call('odd_read')).toEqual(done)
    expect(calls(seen)).toHaveLength(2)
  })

  test('ends the stream without an answer', async () => {
    const { url } = await serveHttp(asked => {
      if (!isCall(asked)) return false
      asked.response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')
      return true
    })
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_write')).rejects.toThrow('broke off')
  })

  test('hangs: a call that is given up does not keep the next one from working', async () => {
    let times = 0
    const { url } = await serveHttp(asked => isCall(asked) && times++ === 0)
    const rig = lend({ url })
    await rig.up()
    const expiry = new AbortController()
    const failing = expect(rig.call('odd_write', {}, { signal: expiry.signal })).rejects.toThrow('time is up')
    await expect.poll(() => times).toBe(1)
    expiry.abort(new Error('time is up'))
    await failing
    expect(await rig.call('odd_write')).toEqual(done)
  })
})

describe('answers of any size', () => {
  const block = 'x'.repeat(1_000_000)
  /** As fast as it is read, until whoever reads has had enough. */
  const pour = ({ response }: Asked, pieces: Iterable<string>) => {
    pipeline(Readable.from(pieces), response, () => {})
    return true
  }
  function* hundred(start: string, end: string) {
    yield start
    for (let i = 0; i < 100; i++) yield block
    yield end
  }
  function* forEver(start: string, blocks: number, end: string) {
    for (;;) {
      yield start
      for (let i = 0; i < blocks; i++) yield block
      yield end
    }
  }

  test.each([
    ['as one document', 'application/json', '', '"}]},"jsonrpc":"2.0","id":ID}'],
    ['as an event', 'text/event-stream', 'event: message\ndata: ', '"}]},"jsonrpc":"2.0","id":ID}\n\n'],
  ])('100 MB %s: that call fails, and the next one does not', async (_, type, prefix, end) => {
    let times = 0
    const { url } = await serveHttp(asked => {
      if (!isCall(asked) || times++ > 0) return false
      asked.response.writeHead(200, { 'content-type': type })
      const start = `${prefix}{"result":{"content":[{"type":"text","text":"`
      return pour(asked, hundred(start, end.replace('ID', String(asked.message.id))))
    })
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_read')).rejects.toMatchObject({ code: 'answer_too_large' })
    expect(await rig.call('odd_read')).toEqual(done)
    expect(times).toBe(2)
  })

  test.each([
    ['an event without end', 'data: {"result":"', 1000, ''],
    ['an event of many lines', 'data: {"result":"', 1, '\n'],
    ['an event of which nobody can say what it answers', 'data: x', 12, '\n\n'],
  ])('%s', async (_, start, blocks, end) => {
    let times = 0
    const { url } = await serveHttp(asked => {
      if (!isCall(asked) || times++ > 0) return false
      asked.response.writeHead(200, { 'content-type': 'text/event-stream' })
      return pour(asked, forEver(start, blocks, end))
    })
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_write')).rejects.toMatchObject({ code: 'answer_too_large' })
    expect(await rig.call('odd_write')).toEqual(done)
  })

  test('an error page of 100 MB is not read', async () => {
    const { url } = await serveHttp(asked => {
      if (!isCall(asked)) return false
      asked.response.writeHead(500)
      return pour(asked, hundred('', ''))
    })
    const rig = lend({ url })
    await rig.up()
    await expect(rig.call('odd_write')).rejects.toThrow('The server odd answered with HTTP 500.')
  })
})

describe('a list of tools', () => {
  test('comes in pages', async () => {
    const { url } = await serveHttp(({ message, answer }) => {
      if (message.method !== 'tools/list') return false
      const at = Number(message.params?.cursor ?? 0)
      answer({
        tools: [{ name: `t${at}`, inputSchema: { type: 'object' } }],
        ...(at < 9 ? { nextCursor: String(at + 1) } : {}),
      })
      return true
    })
    const rig = lend({ url })
    await rig.up()
    expect(rig.service.tools().map(({ name }) => name)).toEqual(
      Array.from({ length: 10 }, (_, at) => `odd_t${at}`),
    )
  })

  test.each([
    ['leads in a circle', () => 'again', 2],
    ['has no end', () => crypto.randomUUID(), 50],
  ])('%s: it is read for so long and no longer', async (_, next, pages) => {
    const { url, seen } = await serveHttp(({ message, answer }) => {
      if (message.method !== 'tools/list') return false
      answer({ tools: [{ name: 'same', inputSchema: { type: 'object' } }], nextCursor: next() })
      return true
    })
    const rig = lend({ url })
    await rig.up()
    expect(rig.service.tools()).toHaveLength(1)
    expect(seen.filter(({ message }) => message.method === 'tools/list')).toHaveLength(pages)
  })

  test('that is none keeps it from being used, and the state says so', async () => {
    const { url } = await serveHttp(({ message, answer }) => {
      if (message.method !== 'tools/list') return false
      answer({ tools: 'all of them' })
      return true
    })
    const rig = lend({ url })
    await rig.until(({ text }) => text.includes('did not tell its tools'))
  })
})

test('a server that knows only the newest protocol is spoken to in it', async () => {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer(
        { name: 'new', version: '1.0.0' },
        { capabilities: { tools: { listChanged: true } } },
      )
      server.registerTool('greet', {}, () => ({ content: [{ type: 'text', text: greeting }] }))
      if (greeting !== 'hello') server.registerTool('late', {}, () => ({ content: [] }))
      return server
    },
    { legacy: 'reject' },
  )
  let greeting = 'hello'
  const server = createAdaptorServer({ fetch: request => handler.fetch(request) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const rig = lend({ url: `http://127.0.0.1:${port}/mcp` })
  await rig.up()
  expect(await rig.call('odd_greet')).toMatchObject({ content: [{ type: 'text', text: 'hello' }] })
  greeting = 'good evening'
  // Who listens is told; that somebody does is not known from outside, so it is said until it was heard.
  const telling = setInterval(() => handler.notify.toolsChanged(), 20)
  await rig.until(() => rig.service.tools().some(({ name }) => name === 'odd_late'))
  clearInterval(telling)
  await rig.service.stop?.()
  await handler.close()
  server.close()
})
