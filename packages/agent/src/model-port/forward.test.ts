import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { openModelPort } from './forward.ts'

/** The host's socket, and a port that leads to it. */
async function open() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-port-'))
  const path = join(folder, 'model.sock')
  const arrived: Socket[] = []
  const host = createServer({ allowHalfOpen: true }, socket =>
    arrived.push(socket.on('error', () => {})),
  ).listen(path)
  await once(host, 'listening')
  const opened = await openModelPort({ HATCHWAY_MODEL_PORT: '0', ANTHROPIC_UNIX_SOCKET: path })
  const port = opened?.port ?? 0
  onTestFinished(() => {
    for (const socket of arrived) socket.destroy()
    host.close()
    opened?.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const dial = () => {
    const client = connect({ port, host: '127.0.0.1' }).on('error', () => {})
    onTestFinished(() => void client.destroy())
    return client
  }
  return { host, arrived, dial, port, path }
}

const ended = (socket: Socket) => new Promise<void>(resolve => socket.once('close', () => resolve()))

test('bytes go both ways, and either side may end first', async () => {
  const { host, dial } = await open()
  host.on('connection', async socket => {
    const heard = await text(socket)
    socket.end(`${heard.length} bytes ending in ${heard.slice(-3)}`)
  })
  const client = dial()
  client.end(`${'x'.repeat(5_000_000)}end`)
  expect(await text(client)).toBe('5000003 bytes ending in end')
})

test('a client that breaks off ends its connection to the host, and the other way round', async () => {
  const { arrived, dial } = await open()
  const client = dial()
  await expect.poll(() => arrived.length).toBe(1)
  const hostSide = arrived[0]?.resume()
  client.resetAndDestroy()
  await expect.poll(() => hostSide?.readableEnded).toBe(true)

  const other = dial()
  await expect.poll(() => arrived.length).toBe(2)
  const over = ended(other.resume())
  arrived[1]?.destroy()
  await over
})

test('a host that has gone away ends a connection instead of keeping it waiting', async () => {
  const { host, dial } = await open()
  host.close()
  await once(host, 'close')
  const client = dial()
  await ended(client.resume())
})

test('more connections than one run needs are turned away', async () => {
  const { arrived, dial } = await open()
  const clients = Array.from({ length: 80 }, dial)
  const refused = clients.map(client => ended(client.resume()))
  let gone = 0
  for (const one of refused) one.then(() => gone++)
  await expect.poll(() => gone).toBe(80 - 64)
  await expect.poll(() => arrived.length).toBe(64)
})

test('without a port or a socket there is none, and one that is taken is an error', async () => {
  const { port, path } = await open()
  expect(await openModelPort({ ANTHROPIC_UNIX_SOCKET: path })).toBeUndefined()
  expect(await openModelPort({ HATCHWAY_MODEL_PORT: '0' })).toBeUndefined()
  const taken = openModelPort({ HATCHWAY_MODEL_PORT: String(port), ANTHROPIC_UNIX_SOCKET: path })
  await expect(taken).rejects.toThrow('EADDRINUSE')
})
