import { connect, createServer, type Socket } from 'node:net'
import { request } from '../messages.ts'
import { idleGap, pause } from '../post.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asText } from '../shape.ts'

/** Either end of a unix socket on which one side says a line of JSON and the other says it back. */
let socket: Socket | undefined
let received: ((line: string) => void) | undefined

const lines = (from: Socket, take: (line: string) => void) => {
  let rest = ''
  from.setEncoding('utf8')
  from.on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) take(part)
  })
}

const ask = (to: Socket) =>
  new Promise<number>((resolve, reject) => {
    const { id, body } = request(new Date())
    const start = process.hrtime.bigint()
    received = line => {
      if (asFields(JSON.parse(line)).id !== id) return reject(new Error('another line came back'))
      resolve(Number(process.hrtime.bigint() - start) / 1000)
    }
    to.write(`${body}\n`)
  })

serve({
  listen: path =>
    new Promise<void>(resolve => {
      const server = createServer(peer => {
        lines(peer, line => peer.write(`${JSON.stringify(asFields(JSON.parse(line)))}\n`))
      })
      server.listen(asText(path), resolve)
    }),
  begin: path =>
    new Promise<void>((resolve, reject) => {
      const opened = connect(asText(path), resolve)
      opened.once('error', reject)
      lines(opened, line => received?.(line))
      socket = opened
    }),
  async ask(count) {
    const samples: number[] = []
    for (let index = 0; index < asNumber(count); index++) {
      await pause(idleGap)
      if (socket !== undefined) samples.push(await ask(socket))
    }
    return samples
  },
})
