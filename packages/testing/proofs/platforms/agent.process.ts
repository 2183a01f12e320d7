// An agent that is nothing but an MCP client, in one turn: it asks back, reads what taints it, and does what then needs a
// person's yes. What it prints is its answer.
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const client = new Client({ name: 'agent', version: '1' })
await client.connect(
  new StdioClientTransport({
    command: '/opt/hatchway/node',
    args: ['/opt/hatchway/agent.mjs', 'mcp'],
    env: { ...process.env } as Record<string, string>,
    stderr: 'inherit',
  }),
)
const call = async (name: string, given: Record<string, unknown> = {}) => {
  const { isError, structuredContent, content } = await client.callTool({ name, arguments: given })
  if (isError) throw new Error(`${name}: ${JSON.stringify(content)}`)
  return JSON.stringify(structuredContent ?? content)
}
const answer = await call('ask_user', {
  questions: [{ question: 'Which plan?', options: [{ label: 'Short' }, { label: 'Long' }] }],
})
await call('read_page')
await call('read_diary')
await call('publish', { text: answer.includes('Long') ? 'the long plan' : 'the short plan' })
console.log('The plan is out.')
process.exit(0)
