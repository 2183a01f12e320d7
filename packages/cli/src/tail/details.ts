import type { WholeCommandAnswer } from '@hatchway/host/api'
import { type Fact, facts, quoted } from '../facts.ts'
import { clock, milliseconds, when } from '../format.ts'
import { safeJson } from '../text.ts'
import { wrapped } from '../width.ts'
import type { Row } from './row.ts'

const dayLength = '2026-01-31'.length
/** Nobody reads more of a file on a screen. */
const longestContent = 65_536

/** Everything about one command, in lines that fit. */
export function commandDetails(row: Row, whole: WholeCommandAnswer | null, columns: number): string[] {
  const code = row.code === '' ? '' : ` ${row.code}`
  const pairs: Fact[] = [
    ['command', `${row.seq}${row.repeated ? ', repeated: it got the first answer again' : ''}`],
    ['group', row.group],
    ['type', row.type],
    ['file', row.file],
    ['request', row.requestId === '' ? '-' : row.requestId],
    ['received', `${when(row.receivedAt).slice(0, dayLength)} ${clock(row.receivedAt)}`],
    ['took', milliseconds(row.tookUs)],
    ['decision', row.decision === 'open' ? 'open: accepted, the answer follows' : `${row.decision}${code}`],
  ]
  if (row.message !== '') pairs.push(['reason', row.message])
  if (!whole) return facts(pairs, columns)
  const { group, dialect, main } = whole.sender
  pairs.push(['sender', `${group}, ${dialect ?? 'no'} dialect${main ? ', main group' : ''}`])
  if (whole.error_id !== null) pairs.push(['error', `npx hatchway errors show ${whole.error_id}`])
  return [...facts(pairs, columns), '', ...sections(whole, columns)]
}

function sections({ steps, audit, outcome, content }: WholeCommandAnswer, columns: number): string[] {
  const lines = ['steps']
  for (const { name, at, note = '' } of steps)
    lines.push(...wrapped(`${clock(at)}  ${name.padEnd(9)}  ${note}`.trimEnd(), columns))
  lines.push('', outcome ? 'receipt' : 'receipt: not yet')
  if (outcome) lines.push(...quoted(safeJson(outcome, 2), columns))
  if (audit.length > 0) lines.push('', 'audit')
  for (const { seq, at, action, gate, outcome: result, decided_by, reason } of audit) {
    const by = decided_by === null ? '' : ` by ${decided_by}`
    const why = reason === null ? '' : `: ${reason}`
    lines.push(...wrapped(`${clock(at)}  ${seq}  ${action}  ${gate ?? '-'}, ${result}${by}${why}`, columns))
  }
  lines.push('')
  if (content === null) return [...lines, ...wrapped('file as received: no longer kept', columns)]
  const isCut = content.truncated || content.text.length > longestContent
  lines.push(...wrapped(`file as received${isCut ? ' (only the start)' : ''}`, columns))
  return [...lines, ...quoted(content.text.slice(0, longestContent), columns)]
}
