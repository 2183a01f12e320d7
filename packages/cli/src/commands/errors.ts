import type { ErrorAnswer, ErrorContentAnswer } from '@hatchway/host/api'
import { call, command, family, list } from '../command.ts'
import { facts, quoted } from '../facts.ts'
import { exitCodes, usageError } from '../failure.ts'
import { timeColumn, when } from '../format.ts'
import { flag, group, required, several, text } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { url, withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

export const columns: Column<ErrorAnswer>[] = [
  { title: 'ID', value: entry => entry.id },
  timeColumn('REFUSED', entry => entry.processed_at),
  { title: 'GROUP', value: entry => entry.source_group, flexible: true },
  { title: 'FILE', value: fileOf, flexible: true },
  { title: 'CODE', value: entry => entry.code },
  { title: 'REASON', value: entry => entry.error, flexible: true },
]

function fileOf(entry: ErrorAnswer): string {
  if (entry.original_file === null) return `${entry.count} files, not kept`
  return entry.directory === null ? entry.original_file : `${entry.directory}/${entry.original_file}`
}

function details(
  entry: ErrorContentAnswer,
  { content: withContent }: { content?: boolean | undefined },
): string[] {
  const lines = facts([
    ['id', entry.id],
    ['file', fileOf(entry)],
    ['group', entry.source_group],
    ['type', entry.type ?? '-'],
    ['refused', when(entry.processed_at)],
    ['code', entry.code],
    ['reason', entry.error],
    ['size', `${entry.size} bytes`],
    ['kept', entry.kept ? 'yes' : 'no'],
  ])
  if (!withContent) return lines
  const { content } = entry
  if (!content) return [...lines, 'The file was not kept.']
  const title = `content${content.truncated ? ' (only the start)' : ''}`
  return [...lines, title, ...quoted(Buffer.from(content.base64, 'base64').toString('utf8'))]
}

interface Replayed {
  id: string
  ok: boolean
  error?: { code: string; message: string }
}

const replay = command('replay', 'handle refused files again, after the cause is fixed', {
  example: '17 18\n--all --code unregistered_group',
  input: {
    ids: several('from errors list'),
    all: flag('every file that was kept'),
    code: text('code', 'with --all: only files refused with this code'),
    group: text('folder', 'with --all: only this group'),
  },
  async run(given) {
    const { ids, all, code, group, json } = given
    if ((ids.length === 0) === !all) throw usageError('Name the ids to replay, or use --all.')
    await withClient(given, async (client, api) => {
      const chosen = all
        ? (await client.get(url`/errors?${{ group, code }}`, api.errorsAnswer)).filter(({ kept }) => kept)
        : ids.map(id => ({ id }))
      const results: Replayed[] = []
      for (const { id } of chosen) {
        try {
          await client.post(url`/errors/${id}/replay`, undefined, api.resultAnswer)
          results.push({ id, ok: true })
          if (!json) await printLine(`${visible(id)}  replayed`)
        } catch (error) {
          if (!(error instanceof api.ApiError)) throw error
          process.exitCode = exitCodes.refused
          results.push({ id, ok: false, error: { code: error.code, message: error.message } })
          if (!json) await printLine(`${visible(id)}  ${error.code}  ${visible(error.message)}`)
        }
      }
      if (json) return printJson(results)
      if (chosen.length === 0) await printLine('Nothing to replay.')
      else if (!client.daemon) await printLine('No daemon is running; the next one handles them first.')
    })
  },
})

export default family('errors', 'inspect and replay refused files', [
  list('list', 'list refused files, oldest first', {
    example: '--code invalid_field',
    input: { group, code: text('code', 'only files refused with this code') },
    rows: (client, api, { group, code }) => client.get(url`/errors?${{ group, code }}`, api.errorsAnswer),
    columns,
    empty: 'No refused files.',
  }),
  call('show', 'show a refused file with all its details', {
    example: '17 --content',
    input: {
      id: required('its id, from errors list'),
      content: flag('include the file’s content, with control characters made visible'),
    },
    call: (client, api, { id, content }) =>
      client.get(url`/errors/${id}?${{ content }}`, api.errorContentAnswer),
    print: details,
  }),
  replay,
])
