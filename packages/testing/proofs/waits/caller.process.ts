// An agent that is nothing but an MCP client: one turn, in which it calls tools of the hatch's own server. What it is to
// do is the last word of its prompt. What it hears goes into files of the group's folder, where the test reads it.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const prompt = readFileSync(0, 'utf8')
const has = (name: string) => existsSync(`/workspace/group/${name}`)
const settings = JSON.parse(readFileSync('/workspace/group/settings.json', 'utf8'))

const client = new Client({ name: 'caller', version: '1' })
await client.connect(
  new StdioClientTransport({
    command: '/opt/hatchway/node',
    args: ['/opt/hatchway/agent.mjs', 'mcp'],
    env: { ...process.env, ...settings.environment },
    stderr: 'inherit',
  }),
)
// Once both were read, a person is asked about whatever cannot be undone.
for (const name of ['read_page', 'read_diary']) {
  const { isError, content } = await client.callTool({ name, arguments: {} })
  if (isError) throw new Error(JSON.stringify(content))
}
const giving = new AbortController()
const begun = performance.now()
let isOver = false
const called = client
  .callTool(
    { name: 'wipe', arguments: { text: 'the old photos' } },
    {
      timeout: settings.timeoutMs,
      resetTimeoutOnProgress: true,
      signal: giving.signal,
      onprogress: ({ progress, message }) =>
        appendFileSync(
          '/workspace/group/heard',
          `${JSON.stringify({ ms: performance.now() - begun, progress, message })}\n`,
        ),
    },
  )
  .then(({ content }) => `I was told: ${JSON.stringify(content)}`)
  .catch((error: unknown) => `I gave up: ${error instanceof Error ? error.message : String(error)}`)
  .finally(() => {
    isOver = true
  })
if (prompt.includes('give up')) {
  while (!has('give-up') && !isOver) await sleep(20)
  giving.abort()
}
if (prompt.includes('do not wait')) {
  while (!has('leave') && !isOver) await sleep(20)
  console.log('I did not wait.')
  process.exit(0)
}
const outcome = await called
writeFileSync('/workspace/group/outcome', outcome)
// The run goes on, so that it is not its end that has an effect.
while (prompt.includes('give up') && !has('go-on')) await sleep(20)
console.log(outcome)
process.exit(0)
