import { readdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Layout } from '../../src/layout.ts'
import { commandFromRow } from '../../src/store/rows.ts'
import type { CommandRow } from '../../src/store/types.ts'
import { account } from './arena.ts'
import type { Line } from './inside/ledger.ts'

/** What the hostile agent says it has posted, beside what the host says became of it. */
export interface Judged {
  /** names by its account, without those that it took back itself */
  posted: number
  /** by the host's: decided one by one, or thrown away and counted */
  total: number
  accepted: number
  refused: Record<string, number>
  shed: number
  /** decisions that were predicted and made */
  checked: number
  wrong: string[]
}

/** Decided after the file was accepted: that is its answer, and nothing for errors/. */
const laterCodes: readonly string[] = ['cancelled', 'expired', 'interrupted', 'denied', 'service_failed']
/** A message's files are looked at when it is its turn. */
const laterForFiles: readonly string[] = ['not_found', 'not_a_file', 'too_large']
const wasAccepted = (row: CommandRow, listed: ReadonlySet<string>): CommandRow => {
  if (row.outcome?.ok !== false || listed.has(String(row.seq))) return row
  const { code } = row.outcome.error
  const isLater = laterCodes.includes(code) || (row.type === 'send_message' && laterForFiles.includes(code))
  return isLater ? { ...row, outcome: null } : row
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
    const { accepted, refused, shed, total } = account(
      layout.errors,
      group,
      rows.map(row => wasAccepted(row, listed)),
      [],
    )
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
    return { posted, total, accepted, refused, shed, checked, wrong }
  } finally {
    database.close()
  }
}
