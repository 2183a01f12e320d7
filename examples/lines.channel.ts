import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Channel } from '../packages/host/src/chat/channels/types.ts'

/** One chat over a socket, a line a message: `nc -U desk.sock`, for whoever may enter its directory. */
export function createLinesChannel(options: { jid: string; socket: string }): Channel {
  const { jid, socket } = options
  const people = new Set<Socket>()
  let server: Server | undefined

  return {
    name: 'lines',
    messageLimit: 4000,
    reaches: chat => chat === jid,
    async connect(host) {
      rmSync(socket, { force: true })
      server = createServer(person => {
        people.add(person)
        // Whoever hangs up in the middle of a line is no failure.
        person.on('error', () => {}).on('close', () => people.delete(person))
        createInterface({ input: person }).on('line', async text => {
          if (text.trim() === '') return
          const said = { jid, sender: 'desk', senderName: 'Desk', text, at: Date.now() }
          const received = await host.receive(said)
          if (!received.ok) person.write(`! ${received.error.message}\n`)
        })
      })
      await new Promise<void>((resolve, reject) => {
        server?.once('error', reject).listen(socket, resolve)
      })
    },
    async send({ text }) {
      // The outbox keeps it, and asks again with growing pauses.
      if (people.size === 0) throw new Error('Nobody is there to read it.')
      for (const person of people) person.write(`${text}\n`)
    },
    async disconnect() {
      for (const person of people) person.destroy()
      await new Promise<void>(resolve => (server ? server.close(() => resolve()) : resolve()))
    },
  }
}
