import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { answeredTooLarge } from './failure.ts'
import { cutLines, requestOf } from './lines.ts'
import type { Program } from './program.ts'

export interface StdioOptions {
  /** the longest message */
  limitBytes: number
  parse(line: string): JSONRPCMessage
  /** it wrote something on standard output that is not MCP */
  rubbish(line: string): void
  /** it writes a message that does not end, or too large a one of which nobody can say what it answers */
  flooded(): void
}

/**
 * What the client library speaks through to a program. The library's own has neither a process group nor a say in the
 * environment, and ends the whole conversation over one answer that is too large; here only that answer is dropped.
 */
export function stdioTransport(program: Program, options: StdioOptions): Transport {
  const { stdin, stdout } = program
  const transport: Transport & { pid: number; stderr: null } = {
    // By these two the library knows a program from an address.
    pid: program.pid,
    stderr: null,
    async start() {
      const cut = cutLines(options.limitBytes, {
        line: take,
        tooLong(ends) {
          const id = requestOf(ends)
          if (id === undefined) options.flooded()
          else deliver(answeredTooLarge(id))
        },
        endless: options.flooded,
      })
      stdout.on('data', cut)
      stdout.on('error', error => transport.onerror?.(error))
      const close = () => void delivering.then(() => transport.onclose?.())
      // Its last words on standard output come before `close`; a grandchild that holds the pipe must not hold us.
      stdout.once('close', close)
      void program.ended.then(() => setTimeout(() => stdout.destroy(), drainMs).unref())
      if (stdout.closed) close()
    },
    send: message =>
      new Promise((resolve, reject) => {
        stdin.write(`${JSON.stringify(message)}\n`, error => (error ? reject(error) : resolve()))
      }),
    async close() {
      stdin.end()
      stdout.destroy()
    },
  }

  const take = (line: Buffer) => {
    const text = line.toString('utf8')
    if (text.trim() === '') return
    let message: JSONRPCMessage
    try {
      message = options.parse(text)
    } catch {
      options.rubbish(text)
      return
    }
    deliver(message)
  }

  // One after the other, with a breath in between: the library looks at a notification only after that, and would take
  // the last word about progress for one about a call that is over.
  let delivering = Promise.resolve()
  const deliver = (message: JSONRPCMessage) => {
    delivering = delivering.then(() => {
      try {
        transport.onmessage?.(message)
      } catch (error) {
        transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    })
  }
  return transport
}

const drainMs = 500
