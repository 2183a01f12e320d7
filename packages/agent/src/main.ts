import { Console } from 'node:console'
import { config } from 'zod'
import { readEnvironment } from './run/environment.ts'

// A run checks each kind of text a few times: to compile a function for it takes longer than to go without.
config({ jitless: true })

const help = `The agent's side of the hatch.

  agent.mjs run    one run: reads its start document from standard input, works, and tells of it on standard output
  agent.mjs mcp    the MCP server, on standard input and output
  agent.mjs hatchway tools|call …
                   lists and calls the tools of that server, as \`hatchway\` does in a sandbox
  agent.mjs --help

HATCHWAY_IPC        the shared directory (/workspace/ipc)
HATCHWAY_GROUP_DIR  the group's folder (/workspace/group)
HATCHWAY_CLAUDE_SDK where the Claude Agent SDK is, for the driver claude
HATCHWAY_CLAUDE_BIN the Claude Code program, for the driver claude
`

async function main(argument: string | undefined): Promise<number | undefined> {
  if (argument === 'run') return await runOnce()
  if (argument === 'mcp') {
    const { serveMcp } = await import('./mcp/index.ts')
    await serveMcp()
    return undefined
  }
  if (argument === 'hatchway') return await callTools(process.argv.slice(3))
  const asked = argument === '--help' || argument === '-h' || argument === 'help'
  const stream = asked ? process.stdout : process.stderr
  stream.write(help)
  return asked ? 0 : 2
}

async function callTools(words: readonly string[]): Promise<number> {
  const ending = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => ending.abort())
  const { runHatchway } = await import('./command-line/hatchway.ts')
  let written = Promise.resolve()
  const code = await runHatchway({
    words,
    environment: process.env,
    stdin: process.stdin,
    print: text => {
      written = new Promise(resolve => process.stdout.write(text, () => resolve()))
    },
    abort: ending.signal,
  })
  // An exit would cut what a pipe has not taken yet.
  await written
  return code
}

async function runOnce(): Promise<number> {
  const write = process.stdout.write.bind(process.stdout)
  // Standard output is the host's. What a library prints goes to the log beside it.
  process.stdout.write = process.stderr.write.bind(process.stderr)
  globalThis.console = new Console(process.stderr, process.stderr)

  const ending = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => ending.abort())
  process.stdout.on('error', () => ending.abort())
  const { run } = await import('./run/run.ts')
  return run({
    stdin: process.stdin,
    write: line => {
      write(line)
    },
    environment: readEnvironment(),
    abort: ending.signal,
  })
}

const code = await main(process.argv[2])
// Whatever a driver has left open must not keep a finished run alive.
if (code !== undefined) process.exit(code)
