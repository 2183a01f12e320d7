import { readFileSync } from 'node:fs'
import type { LentServerAnswer, LentServerTriedAnswer } from '@hatchway/host/api'
import { call, command, family, list, tableOf } from '../command.ts'
import { Failure, usageError } from '../failure.ts'
import { choice, required, several, text, texts } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { url, withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const whoMay = (groups: LentServerAnswer['groups']) => (Array.isArray(groups) ? groups.join(', ') : groups)

const columns: Column<LentServerAnswer>[] = [
  { title: 'NAME', value: server => server.name },
  { title: 'STATE', value: stateOf, flexible: true },
  { title: 'GROUPS', value: server => whoMay(server.groups), flexible: true },
  { title: 'INTERNET', value: server => server.labels.public_sink ?? 'unknown' },
  { title: 'PRIVATE DATA', value: server => server.labels.secret_data ?? 'unknown' },
  { title: 'RUNS', value: server => server.where, flexible: true },
]

function stateOf({ up, state, added }: LentServerAnswer): string {
  if (up === null) return added ? 'added; the daemon does not run' : 'the daemon does not run'
  return state ?? 'up'
}

type Tool = LentServerTriedAnswer['tools'][number]

const toolColumns: Column<Tool>[] = [
  { title: 'TOOL', value: tool => tool.name, flexible: true },
  { title: 'AGENTS CALL IT', value: tool => tool.lent_as, flexible: true },
  { title: 'IT SAYS', value: tool => (tool.read_only ? 'only reads' : 'may change things') },
]

async function printTools({ tools, problems }: LentServerTriedAnswer): Promise<void> {
  await printLine(
    tools.length === 0 ? 'It has no tools that can be lent.' : await tableOf(toolColumns, tools),
  )
  for (const problem of problems) await printLine(visible(problem))
}

/** `TOKEN` is the host's variable of this name; `TOKEN=…`, or `TOKEN=@file` for what a file holds, is kept with the server. */
function variables(given: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    given.map(one => {
      const at = one.indexOf('=')
      return at < 0 ? [one, { variable: one }] : [one.slice(0, at), givenValue(one.slice(at + 1))]
    }),
  )
}

function headersFrom(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map(one => {
      const at = one.indexOf('=')
      if (at < 1) throw usageError(`--header ${visible(one)} is not of the form name=value.`)
      return [one.slice(0, at), givenValue(one.slice(at + 1))]
    }),
  )
}

const givenValue = (given: string): string =>
  given.startsWith('@') ? readFileSync(given.slice(1), 'utf8').trim() : given

/** `main`, `all`, or folders. */
function groupsFrom(given: readonly string[]): LentServerAnswer['groups'] | undefined {
  const [only, ...more] = given
  if (only === undefined) return undefined
  return more.length === 0 && (only === 'main' || only === 'all') ? only : [...given]
}

const answers = ['yes', 'no'] as const
type Answer = (typeof answers)[number]
interface Given {
  internet: Answer | undefined
  private: Answer | undefined
}

/** The two questions. At no terminal only what is known of a server stands for what was not given. */
async function answered(
  name: string,
  given: Given,
  { suggested }: LentServerTriedAnswer,
): Promise<{ internet: boolean; private: boolean }> {
  const open = (['internet', 'private'] as const).filter(key => given[key] === undefined)
  const result = {
    internet: given.internet === undefined ? suggested.internet : given.internet === 'yes',
    private: given.private === undefined ? suggested.private : given.private === 'yes',
  }
  if (open.length === 0 || (!process.stdin.isTTY && suggested.known !== null)) return result
  if (!process.stdin.isTTY)
    throw usageError(
      `Nothing was added. Say what is known of its data: ${open.map(key => `--${key} yes or --${key} no`).join(', and ')}.`,
    )
  const questions = {
    internet: 'Does it reach the internet, or other people?',
    private: 'Does it hold private data?',
  }
  const { withQuestions } = await import('../questions.ts')
  await withQuestions(
    async ({ choose }) => {
      for (const key of open)
        result[key] = (await choose(questions[key], answers, result[key] ? 'yes' : 'no')) === 'yes'
    },
    { whenEnded: `${name} was not added.` },
  )
  return result
}

/** How often people are going to be asked, in a line. */
function outlook({ tools }: LentServerTriedAnswer): string {
  const isLocal = ({ labels }: Tool) => labels.public_sink === 'no' && labels.dangerous_writes === 'no'
  const free = tools.filter(isLocal).length
  if (free === tools.length)
    return 'None of them ever needs an approval: nothing goes out, and nothing is changed for good.'
  return `${free} of ${tools.length} never need an approval; the others do once the conversation has read what makes them risky.`
}

const add = command('add', 'lend an MCP server to agents: start it, list its tools, say what its data is', {
  example: [
    'files -- npx -y @modelcontextprotocol/server-filesystem /srv/shared',
    'github --env GITHUB_TOKEN=@token-file --groups family -- npx -y @modelcontextprotocol/server-github',
    'linear https://mcp.linear.app/mcp --header authorization=@header-file --internet yes --private yes',
  ].join('\n'),
  input: {
    name: required('what it is called; its tools begin with it'),
    command: several('the program and its arguments, after --; or its address'),
    internet: choice('answer', 'whether it reaches the internet, or other people', answers),
    private: choice('answer', 'whether it holds private data', answers),
    groups: texts('folder', 'who may use it: main (if left out), all, or a folder; can be repeated'),
    tools: texts('tool', 'a tool to lend (default: all of them); can be repeated'),
    env: texts(
      'name=value',
      'a variable for the program; a name alone is the host’s own, @file what a file holds',
    ),
    header: texts('name=value', 'a header for the address; @file for what a file holds'),
    cwd: text('directory', 'where the program runs'),
  },
  async run({
    name,
    command: given,
    internet,
    private: isPrivate,
    groups,
    tools,
    env,
    header,
    cwd,
    ...options
  }) {
    const [first] = given
    if (first === undefined) throw usageError('Name the program after --, or an address.')
    const isAddress = given.length === 1 && /^https?:\/\//.test(first)
    const settings = {
      ...(isAddress ? { url: first } : { command: given }),
      ...(env.length > 0 && { env: variables(env) }),
      ...(header.length > 0 && { headers: headersFrom(header) }),
      ...(tools.length > 0 && { tools }),
      cwd,
      groups: groupsFrom(groups),
    }
    await withClient(
      options,
      async (client, api) => {
        const tried = await withProgress(`Starting ${name}`, () =>
          client.post('/mcp/try', { name, settings }, api.lentServerTriedAnswer),
        )
        if (!options.json) await printTools(tried)
        const about = await answered(name, { internet, private: isPrivate }, tried)
        const added = await client.post('/mcp', { name, settings, ...about }, api.lentServerTriedAnswer)
        if (options.json) return printJson({ name, ...about, ...added })
        await printLine(
          `${visible(name)} is lent to ${visible(whoMay(settings.groups ?? 'main'))}, as a server that ${about.internet ? 'reaches' : 'does not reach'} the internet and ${about.private ? 'holds' : 'does not hold'} private data.`,
        )
        if (added.tools.length > 0) await printLine(outlook(added))
      },
      { creates: true },
    )
  },
})

export default family('mcp', 'lend MCP servers of this host to agents', [
  list('list', 'list lent MCP servers and their state', {
    example: '--json',
    isDefault: true,
    rows: (client, api) => client.get('/mcp', api.lentServersAnswer),
    columns,
    empty: 'None is lent. Lend one with: npx hatchway mcp add NAME -- COMMAND',
  }),
  add,
  call('test', 'start an MCP server once more, or ask its address, and list its tools', {
    example: 'files',
    input: { name: required('its name') },
    progress: 'Starting it',
    call: (client, api, { name }) =>
      client.post(url`/mcp/${name}/test`, undefined, api.lentServerTriedAnswer),
    async print({ tools, problems }, { name }) {
      const rows = tools.length === 0 ? '' : `\n${await tableOf(toolColumns, tools)}`
      return [`${visible(name)} answers.${rows}`, ...problems.map(visible)].join('\n')
    },
  }),
  call('remove', 'lend an MCP server no longer, and delete its keys', {
    example: 'files',
    input: { name: required('its name') },
    async call(client, api, { name }) {
      const { removed } = await client.delete(url`/mcp/${name}`, api.removedAnswer)
      if (!removed) throw new Failure(`${visible(name)} was not added.`)
      return { removed }
    },
    print: (_, { name }) => `${visible(name)} is removed.`,
  }),
])
