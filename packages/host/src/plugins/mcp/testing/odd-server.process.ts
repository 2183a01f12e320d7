import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

/**
 * A server that does whatever a test needs to go wrong. Words on its command line:
 * `modern`: it refuses the older greeting. `immortal`: neither the end of its input nor SIGTERM ends it.
 */
const words = new Set(process.argv.slice(2))

if (words.has('immortal')) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 60_000)
}

const said = (text: string) => ({ content: [{ type: 'text' as const, text }] })
/** ends it without a word, and without letting anything else happen first */
const fall = (): never => process.exit(7)

function oddServer(): McpServer {
  const server = new McpServer(
    { name: 'odd', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  )
  const file = { inputSchema: z.object({ file: z.string() }) }

  server.registerTool('who', {}, () => said(String(process.pid)))
  server.registerTool('environment', {}, () => said(JSON.stringify(process.env)))
  server.registerTool('echo', { inputSchema: z.looseObject({}) }, input => said(JSON.stringify(input)))
  server.registerTool('fail', {}, () => {
    throw new Error('this is what it says')
  })
  server.registerTool('crash', file, ({ file }) => {
    appendFileSync(file, 'x')
    return fall()
  })
  server.registerTool('crash-once', { ...file, annotations: { readOnlyHint: true } }, ({ file }) => {
    const isSecond = existsSync(file)
    writeFileSync(file, '')
    return isSecond ? said('done') : fall()
  })
  server.registerTool('hang', file, ({ file }) => {
    writeFileSync(file, '')
    for (;;);
  })
  server.registerTool('wait', file, async ({ file }, { mcpReq }) => {
    appendFileSync(file, 'begun ')
    await new Promise(resolve => mcpReq.signal.addEventListener('abort', resolve))
    appendFileSync(file, 'cancelled')
    return said('cancelled')
  })
  server.registerTool('wait-for', file, async ({ file }) => {
    while (!existsSync(file)) await new Promise(resolve => setTimeout(resolve, 10))
    return said('it is there')
  })
  server.registerTool('large', { inputSchema: z.object({ megabytes: z.number() }) }, ({ megabytes }) =>
    said('x'.repeat(megabytes * 1_000_000)),
  )
  server.registerTool('endless', {}, async () => {
    const block = 'x'.repeat(1_000_000)
    for (;;) await new Promise(resolve => process.stdout.write(block, resolve))
  })
  server.registerTool(
    'unanswered',
    { inputSchema: z.object({ megabytes: z.number() }) },
    async ({ megabytes }) => {
      process.stdout.write(`${'x'.repeat(megabytes * 1_000_000)}\n`)
      await new Promise(() => {})
      return said('')
    },
  )
  server.registerTool(
    'nested',
    { inputSchema: z.object({ depth: z.number() }) },
    async ({ depth }, { mcpReq }) => {
      const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
      // By hand: no library writes this.
      process.stdout.write(
        `{"jsonrpc":"2.0","id":${mcpReq.id},"result":{"content":[],"structuredContent":${deep}}}\n`,
      )
      await new Promise(() => {})
      return said('')
    },
  )
  server.registerTool('grow', { inputSchema: z.object({ name: z.string() }) }, ({ name }) => {
    server.registerTool(name, {}, () => said(name))
    return said('grown')
  })
  server.registerTool('shrink', {}, () => {
    shrinking.remove()
    return said('shrunk')
  })
  const shrinking = server.registerTool('short-lived', {}, () => said('still here'))
  server.registerTool('ask', {}, async ({ mcpReq }) => {
    const answers: string[] = []
    for (const request of [
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
      {
        method: 'elicitation/create',
        params: { message: 'Your name?', requestedSchema: { type: 'object', properties: {} } },
      },
      { method: 'roots/list' },
    ] as const) {
      await mcpReq.send(request).then(
        () => answers.push('answered'),
        error => answers.push(error.message),
      )
    }
    return said(JSON.stringify(answers))
  })
  server.registerTool(
    'offspring',
    { inputSchema: z.object({ leavesGroup: z.boolean() }) },
    async ({ leavesGroup }) => {
      const child = spawn(
        process.execPath,
        ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 60000)'],
        {
          stdio: 'ignore',
          detached: leavesGroup,
        },
      )
      await new Promise(resolve => child.once('spawn', resolve))
      return said(String(child.pid))
    },
  )
  return server
}

serveStdio(oddServer, { legacy: words.has('modern') ? 'reject' : 'serve' })
