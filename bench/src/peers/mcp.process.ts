import type { Readable, Writable } from 'node:stream'
import { Client, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client'
import { asHatchwayOptions, asSandboxName } from '../hatchway.ts'
import { idleGap, pause } from '../post.ts'
import { type OpenSandbox, openSandbox } from '../sandbox.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber } from '../shape.ts'

/** An MCP client outside a sandbox and the server inside of it, over the sandbox's own pipes. */
let sandbox: OpenSandbox | undefined
let client: Client | undefined
let complaints = ''

const overPipes = (stdin: Writable, stdout: Readable): Transport => {
  const buffer = new ReadBuffer()
  const transport: Transport = {
    async start() {
      stdout.on('data', (chunk: Buffer) => {
        buffer.append(chunk)
        for (let message = buffer.readMessage(); message !== null; message = buffer.readMessage())
          transport.onmessage?.(message)
      })
      stdout.on('close', () => transport.onclose?.())
    },
    async send(message) {
      stdin.write(serializeMessage(message))
    },
    async close() {
      stdin.end()
    },
  }
  return transport
}

const ask = async (caller: Client): Promise<number> => {
  const start = process.hrtime.bigint()
  const result = await caller.callTool({
    name: 'send_message',
    arguments: { text: 'The build is green again. Shall I deploy?' },
  })
  const took = Number(process.hrtime.bigint() - start) / 1000
  // a refusal is quick too, and not what is measured
  if (result.isError) throw new Error(`refused: ${JSON.stringify(result.content)}`)
  return took
}

serve(
  {
    /** why there is nothing to measure, if so */
    async begin(argument) {
      const { name, options, group } = asFields(argument)
      const opened = await openSandbox(asSandboxName(name), asHatchwayOptions(options))
      if ('missing' in opened) return opened.missing
      sandbox = opened
      const { stdin, stdout, stderr, exited } = await opened.startMcp(asNumber(group))
      stderr.on('data', (chunk: Buffer) => {
        complaints = (complaints + chunk.toString()).slice(-2000)
      })
      client = new Client({ name: 'hatchway-bench', version: '1' })
      const early = exited.then(({ problem, code }) => {
        throw new Error(`the server ended (${problem ?? code}): ${complaints}`)
      })
      // later it is the call that fails
      early.catch(() => {})
      await Promise.race([client.connect(overPipes(stdin, stdout)), early])
      return undefined
    },
    async ask(count) {
      const samples: number[] = []
      for (let index = 0; index < asNumber(count); index++) {
        await pause(idleGap)
        if (client !== undefined) samples.push(await ask(client))
      }
      return samples
    },
  },
  async () => {
    await client?.close()
    await sandbox?.close()
  },
)
