import { text } from 'node:stream/consumers'
import type { CallToolResult } from '@modelcontextprotocol/server'
import { complain } from '../mcp/failure.ts'
import { called, openSession } from '../mcp/session.ts'
import { failureKey, type Tool } from '../mcp/tool.ts'
import { flagsOf, helpOf, parseFlags } from './flags.ts'

/**
 * `hatchway` inside a sandbox: the tools of the MCP server, for agents and scripts that do not speak MCP. It is the same
 * client, so the host decides about each call as ever.
 */
const help = `The tools of the host, from inside the sandbox.

  hatchway tools                       lists the tools
  hatchway call TOOL --help            says what a tool takes
  hatchway call TOOL [--NAME VALUE …]  calls it, and prints what comes of it
  hatchway call TOOL --json '{…}'      the same with all arguments as JSON; with "-" from standard input

A value "-" is read from standard input. A list takes its flag again for each item.

Ends with 0 when it was done, 1 when it was refused or failed, 2 when the command line or the arguments are wrong, 3 when it is
unknown whether it happened, 4 when the host did not take it, and nothing happened.
`

const exits = { done: 0, failed: 1, misused: 2, unknown: 3, notTaken: 4 } as const
const exitOf: Readonly<Record<string, number>> = {
  invalid_arguments: exits.misused,
  invalid_field: exits.misused,
  unknown_outcome: exits.unknown,
  unexpected_result: exits.unknown,
  withdrawn: exits.notTaken,
  not_sent: exits.notTaken,
}

export interface CommandLine {
  words: readonly string[]
  environment: Record<string, string | undefined>
  stdin: NodeJS.ReadableStream
  print(text: string): void
  /** the call is taken back when it fires */
  abort: AbortSignal
}

/** The exit code. */
export async function runHatchway(line: CommandLine): Promise<number> {
  const { words, print } = line
  const [command, name, ...rest] = words
  if (command === undefined || command === '--help' || command === '-h' || command === 'help') {
    print(help)
    return command === undefined ? exits.misused : exits.done
  }
  if (command !== 'tools' && command !== 'call')
    return misused(`there is no command ${shown(command)} in the sandbox. See hatchway --help`)
  const { session, offer } = openSession(line.environment, {})
  const tools = offer.tools()
  if (command === 'tools') {
    if (name !== undefined) return misused('hatchway tools takes nothing more. See hatchway call TOOL --help')
    print(listed([...tools.values()]))
    return exits.done
  }
  if (name === undefined || name === '--help' || name === '-h') {
    print(help)
    return name === undefined ? exits.misused : exits.done
  }
  const tool = tools.get(name)
  if (!tool) return misused(`there is no tool ${shown(name)}. hatchway tools lists them`)

  const { inputSchema } = tool.listing()
  const flags = flagsOf(inputSchema)
  let input: Promise<string> | undefined
  const parsed = await parseFlags(flags, rest, () => {
    input ??= text(line.stdin)
    return input
  })
  if ('ask' in parsed) {
    print(helpFor(tool))
    return exits.done
  }
  if ('problem' in parsed)
    return misused(`${parsed.problem}. hatchway call ${name} --help says what it takes. Nothing was sent`)
  const result = await called(tool, parsed.args, session, {
    mcpReq: { signal: line.abort, notify: async () => {} },
  })
  return told(result, print)
}

function told({ content, isError, _meta }: CallToolResult, print: CommandLine['print']): number {
  const words = content.map(wordsOf).join('\n')
  if (!isError) {
    print(`${words}\n`)
    return exits.done
  }
  complain(words)
  const failure = _meta?.[failureKey]
  const code =
    typeof failure === 'object' && failure !== null && 'code' in failure ? String(failure.code) : ''
  return exitOf[code] ?? exits.failed
}

function wordsOf(block: CallToolResult['content'][number]): string {
  if (block.type === 'text') return block.text
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text
  if (block.type === 'resource_link') return `${block.name}: ${block.uri}`
  return `(something of the kind ${block.type} that cannot be shown here)`
}

function misused(problem: string): number {
  complain(`${problem}.`)
  return exits.misused
}

const shown = (word: string) => JSON.stringify(word.slice(0, 100))

const listed = (tools: readonly Tool[]): string => {
  const width = Math.max(...tools.map(({ name }) => name.length))
  return tools
    .map(tool => `${tool.name.padEnd(width)}  ${firstSentence(tool.listing().description)}\n`)
    .join('')
}

/** One line, whoever wrote it. */
const firstSentence = (description: string): string =>
  (/^[\s\S]*?[.!?](?=\s|$)/.exec(description)?.[0] ?? description).replaceAll(/\s+/g, ' ').slice(0, 200)

const helpFor = (tool: Tool): string => {
  const { description, inputSchema } = tool.listing()
  const flags = helpOf(flagsOf(inputSchema))
  return `hatchway call ${tool.name}\n\n${description}\n\n${flags === '' ? '  It takes nothing.' : flags}\n`
}
