import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpFor } from './http.ts'

/** A host's HTTP with one endless answer, which sends what the test gives it. */
async function openStream() {
  let send = (_: string) => {}
  let end = () => {}
  const left = Promise.withResolvers<void>()
  const http = createHttpFor(() =>
    new Hono().get('/feed', request => {
      const encoder = new TextEncoder()
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          send = text => controller.enqueue(encoder.encode(text))
          end = () => controller.close()
        },
        cancel: () => left.resolve(),
      })
      return request.body(body, 200, { 'content-type': 'text/event-stream', 'x-kept': 'yes' })
    }),
  )
  const server = createServer({ pauseOnConnect: true }, connection => http.take(connection))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await http.close()
    server.close()
  })
  const request = get({ port: (server.address() as AddressInfo).port, path: '/feed', agent: false })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  return { answer, send: (text: string) => send(text), end: () => end(), left: left.promise }
}

test('what was sent is not kept for as long as somebody listens', async () => {
  const stream = await openStream()
  let heard = 0
  stream.answer.setEncoding('utf8').on('data', (text: string) => {
    heard += text.length
  })
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  let sent = 0
  const sendMany = async (pieces: number) => {
    for (let i = 0; i < pieces; i++) {
      stream.send('data: x\n\n')
      sent += 9
      // Each comes alone, as commands do.
      await new Promise(setImmediate)
    }
    while (heard < sent) await new Promise(setImmediate)
  }
  await sendMany(5000)
  const before = used()
  await sendMany(40_000)
  // With a promise for each it would be three megabytes and more.
  expect(used() - before).toBeLessThan(1_000_000)
})

test('headers go along, everything arrives, and the end is the end', async () => {
  const stream = await openStream()
  expect(stream.answer.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-kept': 'yes' })
  const long = 'x'.repeat(300_000)
  for (const text of ['one', long, 'two']) stream.send(text)
  stream.end()
  let heard = ''
  for await (const text of stream.answer.setEncoding('utf8')) heard += text
  expect(heard).toBe(`one${long}two`)
})

test('one that leaves is left, also while it does not read', async () => {
  const stream = await openStream()
  for (let i = 0; i < 100; i++) stream.send('x'.repeat(100_000))
  stream.answer.destroy()
  await stream.left
})
