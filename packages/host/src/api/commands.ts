import { setImmediate as breathe } from 'node:timers/promises'
import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { searchAudit } from '../guard/audit/search.ts'
import { isoOf } from '../store/entities/instant.ts'
import type { CommandRow, Store } from '../store/types.ts'
import {
  auditEntry,
  command,
  commandsAnswer,
  eventAnswer,
  type WholeCommandAnswer,
  wholeCommandAnswer,
} from './answers.ts'
import { eventStream } from './events.ts'
import type { Host, HostContext } from './host.ts'
import { readRefused } from './refused-content.ts'
import { page, position, present } from './requests.ts'
import { endOf, notFound, type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('commands')

const outcomes = { '1': true, '0': false, open: 'open' } as const
const commandsQuery = z.object({
  group: folderSchema.optional(),
  type: z.string().optional(),
  ok: z
    .enum(['1', '0', 'open'])
    .optional()
    .describe('1: done, 0: refused, open: accepted, and the answer follows'),
  before: position.optional(),
  ...page,
})

/** The commands that were handled, as they come and one by one. */
export const commandRoutes: readonly Route<HostContext>[] = [
  route.get('/commands', {
    summary: 'The newest commands that match, oldest first',
    role: 'viewer',
    query: commandsQuery,
    answer: commandsAnswer,
    async handle({ host }, { query: { ok, limit = 100, ...filter } }) {
      const rows = await search(host.store, {
        ...present(filter),
        ...(ok === undefined ? {} : { ok: outcomes[ok] }),
        limit,
      })
      return rows.map(command.of)
    },
  }),
  route.get('/commands/:seq', {
    summary: 'One command: what came, from whom, each step, and what was decided',
    role: 'viewer',
    params: z.object({ seq: position }),
    answer: wholeCommandAnswer,
    async handle({ host }, { params: { seq } }) {
      const row = host.store.command(seq)
      if (!row) throw notFound(`No command has the number ${seq}, or it is no longer remembered.`)
      return wholeOf(host, row)
    },
  }),
  route.get('/events', {
    summary: 'Commands as they become durable, one JSON object a line',
    role: 'viewer',
    query: z.object({ group: folderSchema.optional() }),
    answer: eventAnswer,
    gives: 'application/x-ndjson',
    isStream: true,
    handle({ host, heartbeatMs, eventBufferBytes, signal }, { query: { group }, request, caller }) {
      const stream = eventStream(host, {
        group,
        heartbeatMs,
        bufferBytes: eventBufferBytes,
        signal: endOf(signal, caller),
      })
      return request.body(stream, 200, { 'content-type': 'application/x-ndjson' })
    },
  }),
]

const span = 20_000

/** A rare kind may lie far back among a million: it is looked for in pieces, so that nobody waits for that. */
async function search(
  store: Pick<Store, 'commands' | 'lastSeq'>,
  { before, after = 0, limit, ...filter }: Parameters<Store['commands']>[0],
): Promise<readonly CommandRow[]> {
  let below = Math.min(before ?? Number.MAX_SAFE_INTEGER, store.lastSeq() + 1)
  let found: readonly CommandRow[] = []
  while (below > after + 1 && found.length < limit) {
    const from = Math.max(after, below - 1 - span)
    const rows = store.commands({ ...filter, after: from, before: below, limit: limit - found.length })
    found = [...rows, ...found]
    below = from + 1
    await breathe()
  }
  return found
}

async function wholeOf(host: Host, row: CommandRow): Promise<WholeCommandAnswer> {
  const { store } = host
  const requestId = row.reply?.id ?? row.requestId
  const audit =
    requestId === null || requestId === undefined
      ? []
      : await searchAudit(store.audit, { group: row.group, requestId }, { limit: 20 })
  return {
    ...command.of({ ...row, requestId: requestId ?? null }),
    ...(row.reply !== null && row.requestId === null ? { repeated: true } : {}),
    waited_ms: Math.max(0, Math.round(row.receivedAt - row.mtimeUs / 1000)),
    ...refusedOf(host, row),
    sender: { group: row.group, dialect: row.dialect, main: store.group(row.group)?.main ?? false },
    steps: stepsOf(host, row),
    audit: audit.map(auditEntry.of),
  }
}

function refusedOf(host: Host, row: CommandRow): Pick<WholeCommandAnswer, 'content' | 'error_id'> {
  const kept = host.meter.contents.find(row.seq)
  if (kept !== undefined) return { content: { text: kept, truncated: false }, error_id: null }
  const entry = row.outcome?.ok === false ? host.quarantine.find(String(row.seq)) : undefined
  if (!entry) return { content: null, error_id: null }
  const read = entry.kept ? readRefused(host.quarantine.pathOf(entry), host.config.limits.fileBytes) : null
  const content = read && {
    text: Buffer.from(read.base64, 'base64').toString('utf8'),
    truncated: read.truncated,
  }
  return { content: content ?? null, error_id: entry.id }
}

type Step = WholeCommandAnswer['steps'][number]

function stepsOf(host: Host, row: CommandRow): Step[] {
  const claimed = row.receivedAt - row.tookUs / 1000
  const steps: Step[] = [
    { name: 'written', at: isoOf(row.mtimeUs / 1000), note: `${row.directory}/${row.file}` },
    { name: 'claimed', at: isoOf(claimed) },
    { name: 'decided', at: isoOf(row.receivedAt), note: verdictOf(row) },
  ]
  const answeredAt = host.meter.answeredAt(row.seq)
  if (answeredAt !== undefined) steps.push({ name: 'answered', at: isoOf(answeredAt) })
  else if (row.reply && row.outcome) {
    steps.push({
      name: 'answered',
      at: isoOf(row.receivedAt),
      note: 'in the same moment, or before the host was last started',
    })
  }
  return steps
}

const verdictOf = ({ outcome }: CommandRow): string =>
  outcome === null ? 'accepted' : outcome.ok ? 'done' : `refused: ${outcome.error.code}`
