import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer, Socket } from 'node:net'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import { addressOf, type ConnectionLimits, createConnections } from './connections.ts'
import { createHttpFor, type Times } from './http.ts'
import { begin, byPassword, openDaemon, people, send } from './testing.ts'

/** Connected from one of this machine's many addresses; says nothing by itself. */
async function silent(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  // One that was refused is reset; the test looks at whether it is open.
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  socket.resume()
  return socket
}
const many = (port: number, count: number, localAddress: string) =>
  Promise.all(Array.from({ length: count }, () => silent(port, localAddress)))
const openOf = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed).length

const pageFor = (socket: Socket) =>
  new Promise<string>(resolve => {
    let text = ''
    socket.on('data', part => {
      text += part
      if (text.includes('\r\n\r\n')) resolve(text)
    })
    socket.once('close', () => resolve(text))
    socket.write('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  })

test('300 silent connections of one address lock nobody out, not even that address', async () => {
  const { port, socket } = await openDaemon()
  const flood = await many(port, 300, '127.0.0.2')
  await until('those over the limit are closed', () => openOf(flood) <= 128)
  expect(openOf(flood)).toBe(128)
  expect((await send({ port }, '/healthz')).status).toBe(200)
  expect((await send({ port }, '/')).status).toBe(401)
  const post = { method: 'POST', body: '{}' }
  expect((await send({ port }, '/webhook/shop', post)).status).toBe(501)
  expect((await send({ socketPath: socket }, '/healthz')).status).toBe(200)
  expect(await pageFor(await silent(port, '127.0.0.2'))).toMatch(/^HTTP\/1\.1 200/)
  expect(openOf(flood)).toBe(127)
})

test('where all addresses together have too many, the one with the most makes room', async () => {
  const { port } = await openDaemon({ web: { connections: 16, connectionsPerAddress: 64 } })
  const few = await many(port, 10, '127.0.0.3')
  const flood = await many(port, 60, '127.0.0.2')
  const more = await many(port, 30, '127.0.0.4')
  // 16, and 64 more for this machine's own addresses
  await until('there are as many as may be', () => openOf([...few, ...flood, ...more]) <= 80)
  expect(openOf(few)).toBe(10)
  expect(openOf(more)).toBe(30)
  expect(openOf(flood)).toBe(40)
  expect((await send({ port }, '/healthz')).status).toBe(200)
})

/** Connections from addresses that this machine does not have. */
function madeUp(limits: ConnectionLimits) {
  const connections = createConnections(limits)
  let ports = 0
  return {
    /** whether it was admitted, and the connection */
    from(address: string, { isAnswering = false } = {}) {
      const socket = new Socket()
      ports += 1
      Object.defineProperties(socket, { remoteAddress: { value: address }, remotePort: { value: ports } })
      const isAdmitted = connections.admit(socket)
      if (isAnswering) {
        const request = new IncomingMessage(socket)
        request.complete = true
        connections.follow(request, new ServerResponse(request))
      }
      return { isAdmitted, socket }
    },
  }
}
const outsider = (n: number) => `192.0.2.${n}`
const stay = ({ isAdmitted, socket }: { isAdmitted: boolean; socket: Socket }) =>
  isAdmitted && !socket.destroyed

test('while others hold all connections, this machine’s own get in, and as many as are reserved', () => {
  for (const isAnswering of [false, true]) {
    const { from } = madeUp({ total: 4, perAddress: 4, reserve: 2 })
    const others = [1, 2, 3, 4].map(n => from(outsider(n), { isAnswering }))
    const own = [from('127.0.0.1', { isAnswering }), from('::1', { isAnswering })]
    expect([...others, ...own].map(stay)).toEqual(Array(6).fill(true))
  }
})

test('others never get what is reserved for this machine, used or not', () => {
  const { from } = madeUp({ total: 4, perAddress: 4, reserve: 2 })
  const others = [1, 2, 3, 4].map(n => from(outsider(n), { isAnswering: true }))
  expect(from(outsider(5)).isAdmitted).toBe(false)
  // Idle, and from the address that has the most.
  const own = [from('127.0.0.1'), from('127.0.0.1')]
  expect(from(outsider(6)).isAdmitted).toBe(false)
  expect([...others, ...own].map(stay)).toEqual(Array(6).fill(true))
  own[0]?.socket.destroy()
  expect(from(outsider(7)).isAdmitted).toBe(false)
  expect(from('127.0.0.1').isAdmitted).toBe(true)
})

test('what this machine’s own have beyond the reserve makes room for others', () => {
  const { from } = madeUp({ total: 4, perAddress: 10, reserve: 2 })
  const own = Array.from({ length: 6 }, () => from('127.0.0.1'))
  const others = Array.from({ length: 5 }, (_, n) => from(outsider(n)))
  expect(others.every(({ isAdmitted }) => isAdmitted)).toBe(true)
  expect(own.filter(stay).length).toBe(2)
  expect(others.filter(stay).length).toBe(4)
})

test('what is being answered is not ended for another; what is still being sent is', async () => {
  const opened = await openDaemon({ web: { connectionsPerAddress: 8, users: await people() } })
  const { port } = opened
  const { headers } = await byPassword(opened, 'vera')
  const { origin: _, ...looking } = headers
  const stream = await begin({ port }, '/api/events', { headers: looking })
  expect(stream.statusCode).toBe(200)
  let isOver = false
  stream.on('close', () => {
    isOver = true
  })
  stream.resume()
  const slow = await silent(port)
  slow.write('POST /webhook/shop HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\nhalf of')
  const flood = await many(port, 30, '127.0.0.1')
  await until('as many as may be are open', () => openOf(flood) === 7)
  expect(slow.closed).toBe(true)
  expect(isOver).toBe(false)
  expect((await send({ port }, '/healthz')).status).toBe(200)
})

test('one session has sixteen event streams, and can open another when one has ended', async () => {
  const opened = await openDaemon({ web: { users: await people() } })
  const { port } = opened
  const open = async (name: string) => {
    const { headers } = await byPassword(opened, name)
    const { origin: _, ...looking } = headers
    return (path: string) => begin({ port }, path, { headers: looking })
  }
  const [vera, abel] = [await open('vera'), await open('abel')]
  const streams = await Promise.all(
    Array.from({ length: 16 }, (_, n) => vera(n % 2 ? '/api/events' : '/api/host/feed')),
  )
  expect(streams.map(({ statusCode }) => statusCode)).toEqual(streams.map(() => 200))
  const refused = await vera('/api/events')
  expect(refused.statusCode).toBe(429)
  expect(JSON.parse(String((await refused.toArray()).join('')))).toMatchObject({
    error: { code: 'quota_exceeded' },
  })
  const other = await abel('/api/events')
  expect(other.statusCode).toBe(200)
  streams[0]?.destroy()
  let again = await vera('/api/events')
  await until('there is room again', async () => {
    if (again.statusCode === 200) return true
    again.resume()
    again = await vera('/api/events')
    return again.statusCode === 200
  })
  for (const each of [...streams, other, again]) each.destroy()
})

/** HTTP with other time limits than the daemon's, which a test would have to sit out. */
async function serve(app: Hono, times: Partial<Times>) {
  const connections = createConnections({ total: 100, perAddress: 100, reserve: 0 })
  const never = 3_600_000
  const http = createHttpFor(() => app, undefined, connections, {
    ...{ headersMs: never, requestMs: never, stalledMs: never, idleMs: never, checkMs: 10 },
    ...times,
  })
  const server = createServer({ pauseOnConnect: true }, connection => {
    if (connections.admit(connection)) http.take(connection)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  onTestFinished(async () => {
    server.close()
    await http.close()
  })
  return address.port
}

test('whoever sends no whole headers, no whole body or nothing more is disconnected', async () => {
  const app = new Hono()
  app.post('/body', async c => c.text(await c.req.text()))
  app.get('/page', c => c.text('page'))
  const headers = await serve(app, { headersMs: 50 })
  const nothing = await silent(headers)
  const half = await silent(headers)
  half.write('GET /page HTTP/1.1\r\nhost: a\r\nx-more: ')
  const body = await silent(await serve(app, { headersMs: 50, requestMs: 100 }))
  body.write('POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf')
  const idle = await silent(await serve(app, { idleMs: 50 }))
  idle.write('GET /page HTTP/1.1\r\nhost: a\r\n\r\n')
  for (const socket of [nothing, half, body, idle]) {
    await until('it is closed', () => socket.closed)
  }
})

test('an answer that nobody reads ends; one that the host is still at does not', async () => {
  let finish = () => {}
  const later = new Promise<void>(resolve => {
    finish = resolve
  })
  const app = new Hono()
  app.get('/large', c => c.body(new Uint8Array(64 * 1024 * 1024)))
  app.get('/later', async c => {
    await later
    return c.text('done')
  })
  const port = await serve(app, { stalledMs: 50 })
  const waiting = send({ port }, '/later')
  const stopped = await silent(port)
  stopped.pause()
  stopped.write('GET /large HTTP/1.1\r\nhost: a\r\n\r\n')
  const silentOne = await silent(port)
  await until('a silent one is closed', () => silentOne.closed)
  // It notices when it reads on: the answer is not whole.
  await new Promise<void>(resolve => {
    const probe = setInterval(() => {
      if (stopped.bytesRead > 0 && !stopped.writable) resolve()
      stopped.write('x')
    }, 20)
    stopped.once('close', () => resolve())
    stopped.once('error', () => resolve())
    onTestFinished(() => clearInterval(probe))
  })
  finish()
  expect(await waiting).toMatchObject({ status: 200, text: 'done' })
})

test('addresses of IPv6 count by their first half', () => {
  expect(addressOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2')
  expect(addressOf('2001:db8:1:2::9')).toBe('2001:db8:1:2')
  expect(addressOf('2001:db8::1')).toBe('2001:db8:0:0')
  expect(addressOf('fe80::1%eth0')).toBe('fe80:0:0:0')
  expect(addressOf('::ffff:10.0.0.1')).toBe('10.0.0.1')
  expect(addressOf('::1')).toBe('::1')
  expect(addressOf('127.0.0.2')).toBe('127.0.0.2')
})
