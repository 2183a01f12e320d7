/**
 * Writes the parts of docs/ that follow from the code: docs/schemas/*.json and docs/openapi.json from the schemas that
 * check commands and API answers, and, between markers, the tables in docs/protocol.md and the picture of the host's
 * rooms in docs/architecture.md; and the list of commands that `hatchway --help` shows. With --check nothing is written,
 * and a file that is out of date is an error, as is a page that names a file which does not exist.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commandTypes, errorCodes, type JsonSchema, jsonSchemas, payloadJsonSchema } from '@hatchway/protocol'
import { summarise } from '../packages/cli/src/summarise.ts'
import { openApiDocument } from '../packages/host/src/api/openapi.ts'
import { publishedWith } from '../packages/host/src/api/routes.ts'
import { features } from '../packages/host/src/plugins/channels/kind.ts'
import { kinds } from '../packages/host/src/plugins/channels/kinds.ts'
import { builtInRoutes } from '../packages/host/src/plugins/routes.ts'
import { deadPaths } from './named-paths.ts'
import { roomGraph } from './room-graph.ts'

const docs = fileURLToPath(new URL('../docs/', import.meta.url))
const helpList = fileURLToPath(new URL('../packages/cli/src/summaries.json', import.meta.url))
const schemaFolder = join(docs, 'schemas')
/** pages with generated blocks */
const pages = ['protocol.md', 'architecture.md', 'channels/README.md']

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

const kind = (schema: JsonSchema): string => {
  if (schema.enum) return schema.enum.map(value => `\`${value}\``).join(', ')
  if (schema.type === 'boolean') return '`true`, `false`'
  if (schema.type === 'array') return isSchema(schema.items) ? `list of ${kind(schema.items)}` : 'list'
  if (schema.type === 'object' && schema.properties) {
    const required = new Set(schema.required)
    const names = Object.keys(schema.properties).map(name => (required.has(name) ? name : `${name}?`))
    return `object: ${names.join(', ')}`
  }
  return String(schema.type ?? 'anything')
}

const limit = (schema: JsonSchema): string[] => {
  const said: string[] = []
  if (schema.default !== undefined) said.push(`\`${schema.default}\` if left out`)
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength.toLocaleString('en')} characters`)
  if (schema.minItems !== undefined) said.push(`${schema.minItems} to ${schema.maxItems}`)
  if (schema.minimum !== undefined) said.push(`${schema.minimum} to ${schema.maximum?.toLocaleString('en')}`)
  return said
}

const row = (cells: readonly string[]): string =>
  `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')

const commandTable = (): string =>
  table(
    ['type', 'field', 'is', ''],
    commandTypes.flatMap(type => {
      const schema = payloadJsonSchema(type)
      const required = new Set(schema.required)
      const fields = Object.entries(schema.properties ?? {}).filter(([, field]) => isSchema(field))
      return [
        [`**\`${type}\`**`, '', '', schema.description ?? ''],
        ...fields.map(([name, field]) => {
          const described = isSchema(field) ? field : {}
          const notes = [described.description ?? '', ...limit(described)].filter(note => note !== '')
          return ['', `\`${name}\`${required.has(name) ? '' : '?'}`, kind(described), notes.join('; ')]
        }),
      ]
    }),
  )

const errorTable = (): string =>
  table(
    ['code', 'what to do'],
    Object.entries(errorCodes).map(([code, advice]) => [`\`${code}\``, advice]),
  )

/** what the contract suite has seen people do there: it writes that beside each platform */
const resultsOf = (channel: string): readonly unknown[] => {
  const file = new URL(`../packages/testing/src/channels/${channel}/results.json`, import.meta.url)
  const results: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!Array.isArray(results))
    throw new Error(`${file.pathname} has no list: run the suite with HATCHWAY_RESULTS=write`)
  return results
}
/** every channel that the contract suite tries; those that nobody has to add have no page of their own */
const tried = [
  ...kinds.map(({ name, title }) => ({ name, shown: `[${title}](${name}.md)` })),
  { name: 'web', shown: 'The console' },
  { name: 'webhook', shown: '[Webhook](../agents.md#webhooks)' },
].map(channel => ({ ...channel, results: new Set(resultsOf(channel.name)) }))
const channelTable = (): string =>
  table(
    ['', ...tried.map(({ shown }) => shown)],
    Object.entries(features).map(([feature, title]) => [
      title,
      ...tried.map(({ results }) => (results.has(feature) ? 'yes' : '–')),
    ]),
  )

const blocks: Record<string, () => string> = {
  commands: commandTable,
  errors: errorTable,
  rooms: roomGraph,
  channels: channelTable,
}

const block = /<!-- generated: (\w+) -->[\s\S]*?<!-- \/generated -->/g

const withBlocks = (page: string, text: string): string => {
  if (text.search(block) === -1) throw new Error(`docs/${page} has no markers around its generated part`)
  return text.replace(block, (_, name: string) => {
    const made = blocks[name]
    if (!made) throw new Error(`docs/${page} asks for ${name}, which nothing here generates`)
    return `<!-- generated: ${name} -->\n${made()}\n<!-- /generated -->`
  })
}

const current = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

mkdirSync(schemaFolder, { recursive: true })
const wanted = new Map<string, string>()
for (const [name, schema] of Object.entries(jsonSchemas())) {
  wanted.set(join(schemaFolder, `${name}.json`), `${JSON.stringify(schema, null, 2)}\n`)
}
wanted.set(
  join(docs, 'openapi.json'),
  `${JSON.stringify(openApiDocument(publishedWith(builtInRoutes)), null, 2)}\n`,
)
wanted.set(helpList, `${JSON.stringify(await summarise(), null, 2)}\n`)
for (const page of pages) {
  const path = join(docs, page)
  wanted.set(path, withBlocks(page, readFileSync(path, 'utf8')))
}

const outdated = [...wanted].filter(([path, content]) => current(path) !== content).map(([path]) => path)
const leftOver = readdirSync(schemaFolder)
  .map(name => join(schemaFolder, name))
  .filter(path => !wanted.has(path))

if (process.argv.includes('--check')) {
  for (const path of [...outdated, ...leftOver]) console.error(`${path} is out of date: run npm run generate`)
  const dead = deadPaths()
  for (const { page, path } of dead) console.error(`${page} names ${path}, which does not exist`)
  if (outdated.length + leftOver.length + dead.length > 0) process.exitCode = 1
} else {
  for (const path of leftOver) rmSync(path)
  for (const path of outdated) writeFileSync(path, wanted.get(path) ?? '')
}
