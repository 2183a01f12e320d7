import type { Client, ErrorAnswer, ErrorContentAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible, visibleLines } from '../text.ts'

interface FilterOptions extends CommonOptions {
  group?: string
  code?: string
}

export const columns: Column<ErrorAnswer>[] = [
  { title: 'ID', value: entry => entry.id },
  { title: 'REFUSED', value: entry => when(entry.processed_at), brief: briefTime },
  { title: 'GROUP', value: entry => entry.source_group, flexible: true },
  { title: 'FILE', value: fileOf, flexible: true },
  { title: 'CODE', value: entry => entry.code },
  { title: 'REASON', value: entry => entry.error, flexible: true },
]

function fileOf(entry: ErrorAnswer): string {
  if (entry.original_file === null) return `${entry.count} files, not kept`
  return entry.directory === null ? entry.original_file : `${entry.directory}/${entry.original_file}`
}

const queryOf = ({ group, code }: FilterOptions) => {
  const query = new URLSearchParams()
  if (group !== undefined) query.set('group', group)
  if (code !== undefined) query.set('code', code)
  return query
}

export function addErrors(program: Command): void {
  const errors = program.command('errors').description('files that were refused, and why')

  common(errors.command('list').description('all of them, oldest first'), 'errors list --code invalid_field')
    .option('--group <folder>', 'only this group’s')
    .option('--code <code>', 'only those refused for this')
    .action((options: FilterOptions) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get(`/errors?${queryOf(options)}`, api.errorsAnswer)),
          columns,
          'Nothing was refused.',
        ),
      ),
    )

  common(errors.command('show').description('one of them, with everything known'), 'errors show 17 --content')
    .argument('<id>')
    .option('--content', 'what is in the file, with control characters made visible')
    .action(async (id: string, options: CommonOptions & { content?: boolean }) => {
      const entry = await withClient(options, (client, api) =>
        client.get(
          `/errors/${encodeURIComponent(id)}${options.content ? '?content=1' : ''}`,
          api.errorContentAnswer,
        ),
      )
      if (options.json) return printJson(entry)
      await showEntry(entry, options.content ?? false)
    })

  common(
    errors.command('replay').description('have refused files handled again, once the cause is mended'),
    'errors replay 17 18\nerrors replay --all --code unregistered_group',
  )
    .argument('[ids...]')
    .option('--all', 'every file that was kept')
    .option('--code <code>', 'with --all: only those refused for this')
    .option('--group <folder>', 'with --all: only this group’s')
    .action(async (ids: string[], options: FilterOptions & { all?: boolean }) => {
      if ((ids.length === 0) === !options.all) {
        throw new Failure('Name the ids to replay, or say --all.', exitCodes.usage)
      }
      await withClient(options, async (client, api) => {
        const chosen = options.all
          ? (await client.get(`/errors?${queryOf(options)}`, api.errorsAnswer))
              .filter(entry => entry.kept)
              .map(entry => entry.id)
          : ids
        await replay(client, api, chosen, options.json ?? false)
      })
    })
}

async function replay(
  client: Client,
  api: typeof import('@hatchway/host/api'),
  ids: readonly string[],
  json: boolean,
): Promise<void> {
  const outcomes: { id: string; ok: boolean; error?: { code: string; message: string } }[] = []
  for (const id of ids) {
    try {
      await client.post(`/errors/${encodeURIComponent(id)}/replay`, undefined, api.resultAnswer)
      outcomes.push({ id, ok: true })
      if (!json) await printLine(`${visible(id)}  is handled again`)
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error
      process.exitCode = exitCodes.refused
      outcomes.push({ id, ok: false, error: { code: error.code, message: error.message } })
      if (!json) await printLine(`${visible(id)}  ${error.code}  ${visible(error.message)}`)
    }
  }
  if (json) return printJson(outcomes)
  if (ids.length === 0) await printLine('There is nothing to replay.')
  else if (!client.daemon) await printLine('No daemon is running; the next one begins with them.')
}

async function showEntry(entry: ErrorContentAnswer, withContent: boolean): Promise<void> {
  const facts: [string, string][] = [
    ['id', entry.id],
    ['file', fileOf(entry)],
    ['group', entry.source_group],
    ['type', entry.type ?? '-'],
    ['refused', when(entry.processed_at)],
    ['code', entry.code],
    ['reason', entry.error],
    ['size', `${entry.size} bytes`],
    ['kept', entry.kept ? 'yes' : 'no'],
  ]
  for (const [name, value] of facts) await printLine(`${name.padEnd(8)} ${visible(value)}`)
  if (!withContent) return
  if (!entry.content) return printLine('There is no file to show.')
  await printLine(`content${entry.content.truncated ? ' (the beginning)' : ''}`)
  await printLine(visibleLines(Buffer.from(entry.content.base64, 'base64').toString('utf8')))
}
