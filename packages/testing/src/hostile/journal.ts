import { readdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Layout } from '../../../host/src/base/layout.ts'
import { commandFromRow } from '../../../host/src/store/journal.ts'
import type { CommandRow } from '../../../host/src/store/types.ts'
import { account } from './file-testbed.ts'
import type { Line } from './inside/ledger.ts'

/** As far as it can be said. */
interface Range {
  least: number
  most: number
}

/** What the hostile agent says it has posted, beside what the host says became of it. */
export interface Judged {
  /** names by its account, without those that it took back itself */
  posted: number
  /** by the host's: decided one by one, or thrown away and counted */
  total: Range
  accepted: number
  refused: Record<string, number>
  shed: Range
  /** decisions that were predicted and made */
  checked: number
  wrong: string[]
}

/** Decided after the file was accepted: that is its answer, and nothing for errors/. */
const laterCodes: readonly string[] = ['cancelled', 'expired', 'interrupted', 'denied', 'service_failed']
/** What a service says to its arguments, and what is said to a message's files when it is their turn. */
const laterTypes: readonly string[] = ['send_message', 'call_service', 'ask_user', 'check_shell']

/**
 * A refused file that is not in errors/: counted in its summary, unless its request was made before under the same id, or
 * it was accepted and refused later. Of some types the journal does not tell which of the two it was.
 */
const whyUnlisted = ({ type, outcome, reply, requestId }: CommandRow): 'counted' | 'accepted' | 'either' => {
  const isRepeated = reply !== null && requestId === null
  if (isRepeated || (outcome?.ok === false && laterCodes.includes(outcome.error.code))) return 'accepted'
  return type !== null && laterTypes.includes(type) ? 'either' : 'counted'
}

/** Numbers of those that are in errors/. */
const listedIn = (errors: string): Set<string> =>
  new Set(readdirSync(errors).flatMap(name => /-e\.(\d+)-/.exec(name)?.[1] ?? []))

const decisionOf = ({ outcome }: CommandRow): string =>
  outcome === null ? 'answer follows' : outcome.ok ? 'done' : outcome.error.code

export function judge(layout: Layout, group: string, lines: readonly Line[]): Judged {
  const database = new DatabaseSync(layout.database, { readOnly: true, timeout: 10_000 })
  try {
    const listed = listedIn(layout.errors)
    const rows = database
      .prepare('SELECT * FROM commands WHERE group_folder = ?')
      .all(group)
      .map(commandFromRow)
    const unlisted = new Map(
      rows
        .filter(row => row.outcome?.ok === false && !listed.has(String(row.seq)))
        .map(row => [row.seq, whyUnlisted(row)]),
    )
    const counts = account(
      layout.errors,
      group,
      rows.map(row => ((unlisted.get(row.seq) ?? 'counted') === 'counted' ? row : { ...row, outcome: null })),
      [],
    )
    const either = [...unlisted.values()].filter(why => why === 'either').length
    const shed: Range = { least: Math.max(0, counts.shed - either), most: counts.shed }
    const total: Range = { least: rows.length + shed.least, most: rows.length + shed.most }
    const byName = new Map(rows.map(row => [`${row.directory}/${row.file}`, row]))
    const wrong: string[] = []
    let checked = 0
    let posted = 0
    for (const line of lines) {
      if (line.kind === 'count') posted += line.posted
      if (line.kind !== 'posted') continue
      posted++
      const row = byName.get(`${line.drop}/${line.file}`)
      // Thrown away unread, or under a name that cannot be written down: counted.
      if (!row || !line.codes) continue
      checked++
      const decision = decisionOf(row)
      if (!line.codes.includes(decision))
        wrong.push(`${line.what ?? 'a file'} (${line.file}): ${decision}, not ${line.codes.join(' or ')}`)
    }
    const { accepted, refused } = counts
    return { posted, total, accepted, refused, shed, checked, wrong }
  } finally {
    database.close()
  }
}
