import type { AuditEntryAnswer, Client } from '@hatchway/host/api'
import { InvalidArgumentError } from 'commander'
import { call, command, family, list } from '../command.ts'
import { facts, quoted } from '../facts.ts'
import { exitCodes, Failure } from '../failure.ts'
import { timeColumn, when } from '../format.ts'
import { choice, group, limit, parsed, positive, required, text } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { spanMs } from '../schedule.ts'
import { type Api, url, withClient } from '../session.ts'
import type { Column } from '../table.ts'

const taintOf = ({ taint }: AuditEntryAnswer) =>
  taint === null
    ? '-'
    : [...(taint.corrupted ? ['corrupted'] : []), ...(taint.secret ? ['secret'] : [])].join(' ') || 'clean'

const columns: Column<AuditEntryAnswer>[] = [
  { title: 'SEQ', value: entry => String(entry.seq), right: true },
  timeColumn('AT', entry => entry.at),
  { title: 'GROUP', value: entry => entry.group ?? '-', flexible: true },
  { title: 'ACTOR', value: entry => entry.actor, flexible: true },
  { title: 'ACTION', value: entry => entry.action, flexible: true },
  { title: 'TAINT', value: taintOf },
  { title: 'GATE', value: entry => entry.gate ?? '-' },
  { title: 'OUTCOME', value: entry => entry.outcome },
  { title: 'DECIDED BY', value: entry => entry.decided_by ?? '-', flexible: true },
  { title: 'SUMMARY', value: entry => entry.summary, flexible: true },
]

/** `2h` ago, the start of a local day, or any instant. */
function instant(given: string): string {
  const ago = spanMs(given)
  const local = /^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00:00` : given
  const ms = ago === undefined ? Date.parse(local) : Date.now() - ago
  if (Number.isNaN(ms)) throw new InvalidArgumentError('Use a day, a time, or how long ago: 30m, 2h, 7d.')
  return new Date(ms).toISOString()
}

const headHash = (given: string): string => {
  if (/^\d{1,16}:[0-9a-f]{64}$/.test(given)) return given
  throw new InvalidArgumentError('Use the output of hatchway audit head.')
}

type Filter = Readonly<Record<string, string | undefined>>
const pageSize = 1000

/** Newest first; each page continues below the last entry of the one before. */
async function* pages(
  client: Client,
  api: Api,
  filter: Filter,
  from: number | undefined,
  limit: number,
): AsyncIterable<readonly AuditEntryAnswer[]> {
  let before = from
  for (let left = limit; left > 0; left -= pageSize) {
    const size = Math.min(left, pageSize)
    const page = await client.get(url`/audit?${{ ...filter, before, limit: size }}`, api.auditAnswer)
    yield page
    before = page.at(-1)?.seq
    if (page.length < size) return
  }
}

const details = (entry: AuditEntryAnswer): string[] => [
  ...facts([
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
  ]),
  ...(entry.details ? ['details', ...quoted(JSON.stringify(entry.details, null, 2))] : []),
]

const verify = command('verify', 'check that no entry was changed or removed', {
  example: '--head "$(cat head-of-last-week)"',
  input: {
    head: parsed('seq:hash', 'an earlier output of audit head: check that the log still has it', headHash),
  },
  async run(given) {
    const { head } = given
    const report = await withProgress('Checking the audit log', () =>
      withClient(given, (client, api) => client.get(url`/audit/verify?${{ head }}`, api.auditReportAnswer)),
    )
    if (given.json) {
      if (!report.ok) process.exitCode = exitCodes.failed
      return printJson(report)
    }
    if (!report.ok) throw new Failure(report.message)
    const last = `${report.head.seq}:${report.head.hash}`
    await printLine(`The audit log is intact: ${report.entries} entries, the last one is ${last}`)
    if (report.removed) {
      const { until, at } = report.removed
      await printLine(`Entries up to ${until} were removed because of their age, the last ${when(at)}.`)
    }
    if (head !== undefined) await printLine('It contains the given entry.')
  },
})

export default family('audit', 'search and verify the guard’s decisions', [
  list('list', 'search the log, newest first; `audit` alone does the same', {
    example: '--group family --gate ask --since 7d\n--text example.org',
    isDefault: true,
    input: {
      group,
      actor: text('who', 'only actions of: agent, operator, host, person:WHO'),
      action: text('name', 'only this command or tool, or shell'),
      gate: choice('gate', 'only this gate', ['allow', 'inspect', 'ask', 'block']),
      outcome: text('outcome', 'only this outcome: allowed, denied, held, expired, …'),
      by: text('who', 'only decisions by: gate, operator, rule:…, inspector:…, person:…'),
      request: text('id', 'only this request'),
      text: text('text', 'only entries with this in action, summary, reason or details'),
      since: parsed('when', 'from a day, a time, or how long ago: 30m, 2h, 7d', instant),
      until: parsed('when', 'up to a time, as --since', instant),
      before: parsed('seq', 'only entries older than this one', positive),
      limit: limit(100, 1_000_000),
    },
    rows: (client, api, given) => {
      const { group, actor, action, gate, outcome, by, request, text, since, until } = given
      const filter = { group, actor, action, gate, outcome, decided_by: by, request, text, since, until }
      return pages(client, api, filter, given.before, given.limit)
    },
    columns,
    empty: 'No matching entries.',
  }),
  call('show', 'show an entry with all its details', {
    example: '17',
    input: { seq: required('its number, from audit list') },
    call: (client, api, { seq }) => client.get(url`/audit/${seq}`, api.auditEntryAnswer),
    print: details,
  }),
  verify,
  call('head', 'print number and hash of the last entry, to store elsewhere for audit verify', {
    example: '> head-of-today',
    call: (client, api) => client.get('/audit/head', api.auditHeadAnswer),
    print: head => `${head.seq}:${head.hash}`,
  }),
])
