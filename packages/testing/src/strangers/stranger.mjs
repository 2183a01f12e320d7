// The program of somebody else's container: an agent of the past, in its own version, which reaches a model by TCP
// alone. Which one, the last part of its argument or of its group's folder says. It reads its prompt from standard input, as plain text or, in a
// container, in the document of that project, lets the agent work with the hatch's tools, and prints what it says.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const asked = readFileSync(0, 'utf8')
const isContainer = process.env.NANOCLAW_GROUP_FOLDER !== undefined
const programs = {
  sdk92: 'claude-agent-sdk-0.2.92',
  sdk29: 'claude-agent-sdk-0.2.29',
  code: '@anthropic-ai/claude-code',
}
const named = process.argv[2] ?? process.env.NANOCLAW_GROUP_FOLDER
const { query } = await import(programs[named.split('-').at(-1)])

const say = (status, text) => {
  const body = status === 'success' ? { status, result: text } : { status, result: null, error: text }
  const lines = ['---NANOCLAW_OUTPUT_START---', JSON.stringify(body), '---NANOCLAW_OUTPUT_END---']
  process.stdout.write(isContainer ? `${lines.join('\n')}\n` : text)
}

try {
  const answers = query({
    prompt: isContainer ? JSON.parse(asked).prompt : asked,
    options: {
      permissionMode: 'bypassPermissions',
      allowDangerouslySkipPermissions: true,
      mcpServers: {
        hatchway: {
          command: process.execPath,
          args: [fileURLToPath(new URL('../agent/agent.mjs', import.meta.url)), 'mcp'],
          env: { ...process.env },
        },
      },
    },
  })
  for await (const message of answers) {
    if (message.type !== 'result') continue
    say(message.is_error ? 'error' : 'success', message.result ?? message.subtype)
    if (message.is_error) process.exitCode = 1
  }
} catch (error) {
  say('error', error.message)
  process.exitCode = 1
}
