// An agent that speaks ACP, for tests: real in all but its mind. What it does is what the last message says, a word and what
// belongs to it. With `--forgetful` it keeps no sessions.
import { closeSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { setInterval } from 'node:timers'
import {
  type AgentContext,
  agent,
  type McpServer,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const isForgetful = process.argv.includes('--forgetful')
const folder = join(process.env.HOME ?? '.', 'test-agent')
mkdirSync(folder, { recursive: true })

interface Session {
  id: string
  /** every prompt, in order */
  heard: string[]
  tools: Client
}
const sessions = new Map<string, Session>()
let stopTurn = () => {}

async function openSession(id: string, heard: string[], servers: McpServer[]): Promise<Session> {
  const tools = new Client({ name: 'test-agent', version: '1' })
  for (const server of servers) {
    if (!('command' in server)) throw new Error('only programs')
    const env = Object.fromEntries(server.env.map(({ name, value }) => [name, value]))
    await tools.connect(new StdioClientTransport({ command: server.command, args: server.args, env }))
  }
  const session = { id, heard, tools }
  sessions.set(id, session)
  return session
}

async function play(
  client: AgentContext,
  session: Session,
  prompt: string,
): Promise<'end_turn' | 'cancelled'> {
  session.heard.push(prompt)
  if (!isForgetful) writeFileSync(join(folder, `${session.id}.json`), JSON.stringify(session.heard))
  const stopped = new Promise<'cancelled'>(resolve => {
    stopTurn = () => resolve('cancelled')
  })
  const update = (update: SessionUpdate) =>
    client.notify(methods.client.session.update, { sessionId: session.id, update })
  const say = (text: string) =>
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  const call = async (name: string, input: Record<string, unknown>) => {
    const toolCallId = `${name}-${session.heard.length}`
    await update({ sessionUpdate: 'tool_call', toolCallId, title: name, kind: 'other', status: 'pending' })
    await update({ sessionUpdate: 'tool_call_update', toolCallId, rawInput: input, status: 'in_progress' })
    const { content, isError } = await session.tools.callTool({ name, arguments: input })
    const status = isError ? 'failed' : 'completed'
    const text = JSON.stringify(content)
    await update({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status,
      content: [{ type: 'content', content: { type: 'text', text } }],
    })
  }
  const raw = (text: string) => new Promise<void>(resolve => void process.stdout.write(text, () => resolve()))

  const said = /do: ([a-z-]+) ?([^<]*)<\/message>\s*$/.exec(prompt)
  const [, word = 'recall', rest = ''] = said ?? []
  switch (word) {
    case 'tools': {
      await say('I am on it.')
      await call('send_message', { text: 'working on it' })
      const { tools } = await session.tools.listTools()
      // Without arguments most are refused: nothing waits for a person.
      for (const { name } of tools) if (name !== 'send_message') await call(name, { nothing: true })
      await update({
        sessionUpdate: 'agent_thought_chunk',
        content: { type: 'text', text: `There are ${tools.length} tools.` },
      })
      await say('All ')
      await say('done.')
      return 'end_turn'
    }
    case 'ask': {
      const [kind, title, command] = rest.split('|')
      const toolCall = {
        toolCallId: 't',
        title: title ?? '',
        kind: kind as 'execute',
        ...(command ? { rawInput: { command } } : {}),
      }
      const { outcome } = await client.request<RequestPermissionResponse>(
        methods.client.session.requestPermission,
        {
          sessionId: session.id,
          toolCall,
          options: [
            { optionId: 'always', name: 'Always', kind: 'allow_always' },
            { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
            { optionId: 'no', name: 'No', kind: 'reject_once' },
          ],
        },
      )
      await say(outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome)
      return outcome.outcome === 'cancelled' ? stopped : 'end_turn'
    }
    case 'wait':
      await say('This is going to be long, ')
      return stopped
    case 'deaf':
      await update({
        sessionUpdate: 'plan',
        entries: [{ content: 'not to listen', priority: 'low', status: 'pending' }],
      })
      return new Promise(() => {})
    case 'files': {
      const asked = [
        client.request(methods.client.fs.readTextFile, { sessionId: session.id, path: '/etc/passwd' }),
        client.request(methods.client.fs.writeTextFile, { sessionId: session.id, path: '/x', content: '' }),
        client.createTerminal({ sessionId: session.id, command: 'ls' }),
      ]
      const answers = await Promise.allSettled(asked)
      await say(answers.map(({ status }) => status).join(' '))
      return 'end_turn'
    }
    case 'exit':
      console.error('It is too much for me.')
      process.exit(3)
      break
    case 'close':
      closeSync(1)
      return new Promise(() => {})
    case 'half':
      await raw('{"jsonrpc":"2.0","id":')
      process.exit(0)
      break
    case 'long':
      await raw('x'.repeat(9_000_000))
      return new Promise(() => {})
    case 'flood':
      for (;;) await say('again and again ')
    case 'lines':
      for (;;) await raw('\n'.repeat(10_000))
    case 'strange':
      await raw('not JSON\n[]\n{"jsonrpc":"2.0","id":99999,"result":{}}\n{"id":null}\n')
      await raw(
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of another"}}}}\n',
      )
      await raw('{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}\n')
      await say('Still here.')
      return 'end_turn'
    case 'error':
      throw new RequestError(-32_603, 'It does not work.', { why: 'no model' })
    default:
      await say(`I have heard: ${session.heard.join(' | ')}`)
      return 'end_turn'
  }
}

const known = (id: string): Session => {
  const session = sessions.get(id)
  if (!session) throw RequestError.resourceNotFound(id)
  return session
}

agent({ name: 'test-agent' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: PROTOCOL_VERSION,
    agentCapabilities: { loadSession: !isForgetful },
  }))
  .onRequest(methods.agent.session.new, async ({ params }) => {
    const { id } = await openSession(`session-${process.pid}-${Date.now()}`, [], params.mcpServers)
    return { sessionId: id }
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    let heard: string[]
    try {
      heard = JSON.parse(readFileSync(join(folder, `${params.sessionId}.json`), 'utf8'))
    } catch {
      throw RequestError.resourceNotFound(params.sessionId)
    }
    await openSession(params.sessionId, heard, params.mcpServers)
    for (const text of heard)
      await client.notify(methods.client.session.update, {
        sessionId: params.sessionId,
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
      })
    return {}
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const text = params.prompt.map(block => (block.type === 'text' ? block.text : '')).join('')
    return { stopReason: await play(client, known(params.sessionId), text) }
  })
  .onNotification(methods.agent.session.cancel, () => stopTurn())
  .connect(
    ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>),
  )
// It ends with its input.
process.stdin.on('end', () => process.exit(0))
setInterval(() => {}, 60_000)
