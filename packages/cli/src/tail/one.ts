import type { WholeCommandAnswer } from '@hatchway/host/api'
import { when } from '../list.ts'
import { safeJson } from '../text.ts'
import { wrapped } from './cells.ts'
import { clock, type Row, tookOf } from './row.ts'

const nameWidth = 10
const dayLength = '2026-01-31'.length
const bar = '│ '
/** What nobody would read to its end on a screen. */
const longestContent = 65_536

/** Everything about one command, as lines that fit. */
export function linesOf(row: Row, whole: WholeCommandAnswer | null, columns: number): string[] {
  const facts = (pairs: readonly (readonly [string, string])[]) =>
    pairs.flatMap(([name, value]) =>
      wrapped(value, columns - nameWidth).map((part, i) => (i === 0 ? name : '').padEnd(nameWidth) + part),
    )
  // Marked, so that none of it can pass for a line of ours.
  const quoted = (text: string) =>
    text
      .split('\n')
      .flatMap(line => wrapped(line.replace(/\r$/, ''), columns - bar.length).map(part => bar + part))

  const code = row.code === '' ? '' : ` ${row.code}`
  const lines = facts([
    ['command', `${row.seq}${row.repeated ? ', asked before: the first answer was given again' : ''}`],
    ['group', row.group],
    ['type', row.type],
    ['file', row.file],
    ['request', row.requestId === '' ? '-' : row.requestId],
    ['received', `${when(row.receivedAt).slice(0, dayLength)} ${clock(row.receivedAt)}`],
    ['took', tookOf(row.tookUs)],
    ['decision', row.decision === 'open' ? 'open: accepted, the answer follows' : `${row.decision}${code}`],
    ...(row.message === '' ? [] : [['reason', row.message] as const]),
  ])
  if (!whole) return lines

  const { sender, steps, audit, content, outcome } = whole
  lines.push(
    ...facts([
      ['sender', `${sender.group}, ${sender.dialect ?? 'no'} dialect${sender.main ? ', a main group' : ''}`],
      ...(whole.error_id === null ? [] : [['error', `npx hatchway errors show ${whole.error_id}`] as const]),
    ]),
    '',
    'steps',
    ...steps.flatMap(({ name, at, note }) =>
      wrapped(`${clock(at)}  ${name.padEnd(9)}${note === undefined ? '' : `  ${note}`}`, columns),
    ),
    '',
    outcome ? 'receipt' : 'receipt: not yet',
    ...(outcome ? quoted(safeJson(outcome, 2)) : []),
  )
  if (audit.length > 0) lines.push('', 'audit')
  for (const { seq, at, action, gate, outcome: became, decided_by, reason } of audit) {
    const by = decided_by === null ? '' : ` by ${decided_by}`
    const why = reason === null ? '' : `: ${reason}`
    lines.push(...wrapped(`${clock(at)}  ${seq}  ${action}  ${gate ?? '-'}, ${became}${by}${why}`, columns))
  }
  lines.push('')
  if (content === null) return [...lines, ...wrapped('file as received: no longer known', columns)]
  const isCut = content.truncated || content.text.length > longestContent
  lines.push(...wrapped(`file as received${isCut ? ' (the beginning)' : ''}`, columns))
  lines.push(...quoted(content.text.slice(0, longestContent)))
  return lines
}
