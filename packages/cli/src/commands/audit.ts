import type { AuditEntryAnswer, Client } from '@hatchway/host/api'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { briefTime, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible, visibleLines } from '../text.ts'

interface ListOptions extends CommonOptions {
  group?: string
  actor?: string
  action?: string
  gate?: string
  outcome?: string
  by?: string
  request?: string
  text?: string
  since?: string
  until?: string
  before?: number
  limit: number
}

const taintOf = ({ taint }: AuditEntryAnswer) =>
  taint === null
    ? '-'
    : [...(taint.corrupted ? ['corrupted'] : []), ...(taint.secret ? ['secret'] : [])].join(' ') || 'clean'

const columns: Column<AuditEntryAnswer>[] = [
  { title: 'SEQ', value: entry => String(entry.seq), right: true },
  { title: 'AT', value: entry => when(entry.at), brief: briefTime },
  { title: 'GROUP', value: entry => entry.group ?? '-', flexible: true },
  { title: 'ACTOR', value: entry => entry.actor, flexible: true },
  { title: 'ACTION', value: entry => entry.action, flexible: true },
  { title: 'TAINT', value: taintOf },
  { title: 'GATE', value: entry => entry.gate ?? '-' },
  { title: 'OUTCOME', value: entry => entry.outcome },
  { title: 'DECIDED BY', value: entry => entry.decided_by ?? '-', flexible: true },
  { title: 'SUMMARY', value: entry => entry.summary, flexible: true },
]

const unitMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `2h` ago, a day as it begins here, or any instant. */
function instant(text: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const local = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00` : text
  const ms = count === undefined ? Date.parse(local) : Date.now() - Number(count) * (unitMs[unit] ?? 0)
  if (Number.isNaN(ms))
    throw new InvalidArgumentError('Write a day, an instant, or how long ago: 30m, 2h, 7d.')
  return new Date(ms).toISOString()
}

const kept = (text: string): string => {
  if (!/^\d{1,16}:[0-9a-f]{64}$/.test(text)) {
    throw new InvalidArgumentError('Write what hatchway audit head has printed.')
  }
  return text
}

const pageSize = 1000

/** Page by page, each below the last entry of the one before. */
async function* pages(
  client: Client,
  schema: typeof import('@hatchway/host/api')['auditAnswer'],
  options: ListOptions,
): AsyncIterable<readonly AuditEntryAnswer[]> {
  const query = queryOf(options)
  for (let left = options.limit; left > 0; left -= pageSize) {
    const size = Math.min(left, pageSize)
    query.set('limit', String(size))
    const page = await client.get(`/audit?${query}`, schema)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < size) return
    query.set('before', String(last.seq))
  }
}

function queryOf(options: ListOptions): URLSearchParams {
  const query = new URLSearchParams()
  for (const field of [
    'group',
    'actor',
    'action',
    'gate',
    'outcome',
    'request',
    'text',
    'since',
    'until',
  ] as const) {
    const value = options[field]
    if (value !== undefined) query.set(field, value)
  }
  if (options.by !== undefined) query.set('decided_by', options.by)
  if (options.before !== undefined) query.set('before', String(options.before))
  return query
}

export function addAudit(program: Command): void {
  const audit = program.command('audit').description('what the guard decided, and why')

  common(
    audit
      .command('list', { isDefault: true })
      .description('search the log, newest first; `audit` alone does this too'),
    'audit --group family --gate ask --since 7d\naudit --text example.org',
  )
    .option('--group <folder>', 'only this group’s')
    .option('--actor <who>', 'only what they wanted: agent, operator, host, person:WHO')
    .option('--action <name>', 'only this command, tool or shell')
    .addOption(new Option('--gate <gate>', 'only these').choices(['allow', 'inspect', 'ask', 'block']))
    .option('--outcome <outcome>', 'only these: allowed, denied, held, expired, …')
    .option('--by <who>', 'only what they decided: gate, operator, rule:…, inspector:…, person:…')
    .option('--request <id>', 'only of this request')
    .option('--text <text>', 'with this in the action, summary, reason or details')
    .option('--since <when>', 'a day, an instant, or how long ago: 30m, 2h, 7d', instant)
    .option('--until <when>', 'as --since', instant)
    .option('--before <seq>', 'only older ones than this entry', positive)
    .option('--limit <number>', 'so many', positive, 100)
    .action((options: ListOptions) =>
      withClient(options, (client, api) =>
        printList(options, pages(client, api.auditAnswer, options), columns, 'There is no such entry.'),
      ),
    )

  common(audit.command('show').description('one entry, with everything known'), 'audit show 17')
    .argument('<seq>')
    .action(async (seq: string, options: CommonOptions) => {
      const entry = await withClient(options, (client, api) =>
        client.get(`/audit/${encodeURIComponent(seq)}`, api.auditEntryAnswer),
      )
      if (options.json) return printJson(entry)
      await show(entry)
    })

  common(
    audit.command('verify').description('check that no entry was changed or removed'),
    'audit verify\naudit verify --head "$(cat head-of-last-week)"',
  )
    .option('--head <seq:hash>', 'what audit head printed once: check that the log still contains it', kept)
    .action(async (options: CommonOptions & { head?: string }) => {
      const query = new URLSearchParams(options.head === undefined ? {} : { head: options.head })
      const report = await withProgress('Checking the audit log', () =>
        withClient(options, (client, api) => client.get(`/audit/verify?${query}`, api.auditReportAnswer)),
      )
      if (options.json) {
        if (!report.ok) process.exitCode = exitCodes.failed
        return printJson(report)
      }
      if (!report.ok) throw new Failure(report.message)
      const { entries, removed, head } = report
      await printLine(`The audit log holds: ${entries} entries, the last one is ${head.seq}:${head.hash}`)
      if (removed) {
        await printLine(
          `Entries up to ${removed.until} were removed for their age, the last ${when(removed.at)}.`,
        )
      }
      if (options.head !== undefined) await printLine('It contains the entry that was kept.')
    })

  common(
    audit.command('head').description('the last entry’s number and hash, to be kept elsewhere'),
    'audit head > head-of-today',
  ).action(async (options: CommonOptions) => {
    const head = await withClient(options, (client, api) => client.get('/audit/head', api.auditHeadAnswer))
    if (options.json) return printJson(head)
    await printLine(`${head.seq}:${head.hash}`)
  })
}

async function show(entry: AuditEntryAnswer): Promise<void> {
  const facts: [string, string][] = [
    ['seq', String(entry.seq)],
    ['at', when(entry.at)],
    ['group', entry.group ?? '-'],
    ['actor', entry.actor],
    ['action', entry.action],
    ['summary', entry.summary],
    ['taint', taintOf(entry)],
    ['gate', entry.gate ?? '-'],
    ['verdict', entry.verdict ?? '-'],
    ['outcome', entry.outcome],
    ['decided', entry.decided_by ?? '-'],
    ['reason', entry.reason ?? '-'],
    ['took', entry.took_ms === null ? '-' : `${entry.took_ms} ms`],
    ['request', entry.request_id ?? '-'],
    ['hash', entry.hash],
  ]
  for (const [name, value] of facts) await printLine(`${name.padEnd(8)} ${visible(value)}`)
  if (entry.details) await printLine(`details\n${visibleLines(JSON.stringify(entry.details, null, 2))}`)
}
