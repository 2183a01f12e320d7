import { connect, createServer, type Socket } from 'node:net'
import { messageBody } from '../messages.ts'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asText } from '../shape.ts'
import { writing } from '../writing.ts'

/** Lines of JSON over a unix socket. Nobody keeps them: they are where the writer, the kernel or the reader has them. */
const { open, handled, methods } = receiving()
let socket: Socket | undefined
let sent = 0

const connected = (path: string) =>
  new Promise<Socket>((resolve, reject) => {
    const opened = connect(path, () => resolve(opened))
    // before it is open: nobody listens; after that: whoever listened is gone, and so is what was under way
    opened.on('error', reject)
  })

serve({
  begin: argument =>
    new Promise<void>((resolve, reject) => {
      const fields = asFields(argument)
      open(fields)
      const server = createServer(peer => {
        let rest = ''
        peer.setEncoding('utf8').on('data', (text: string) => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) handled(asText(asFields(JSON.parse(line)).name))
        })
      })
      server.once('error', reject)
      server.listen(asText(fields.path), resolve)
    }),
  ...methods,

  ...writing(async to => {
    const opened = socket ?? (await connected(asText(to.path)))
    socket = opened
    return () => {
      const name = String(sent++)
      const line = `{"name":"${name}","message":${messageBody(0, new Date())}}\n`
      const at = process.hrtime.bigint()
      opened.write(line)
      return { name, at }
    }
  }),
})
