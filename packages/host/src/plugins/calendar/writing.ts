import { createHash } from 'node:crypto'
import { ServiceRefusal } from '../../services/define.ts'
import { dayMs } from './days.ts'
import { momentOf } from './times.ts'

const longestEventDays = 366

/** What is to be written: instants, or days with the one after the last. */
export function spanOf(
  start: string,
  end: string,
  zone: string,
): { start: number; end: number; isDate: boolean } {
  const [first, last] = [momentOf('start', start, zone), momentOf('end', end, zone)]
  const refuse = (why: string) => new ServiceRefusal('invalid_field', `end: ${why}`)
  const span =
    first.kind === 'day' && last.kind === 'day'
      ? { start: first.wall, end: last.wall + dayMs, isDate: true }
      : first.kind === 'instant' && last.kind === 'instant'
        ? { start: first.at, end: last.at, isDate: false }
        : undefined
  if (!span) throw refuse('must be a date if start is one, and a time if start is one')
  if (span.end <= span.start)
    throw refuse(span.isDate ? 'must not lie before start' : 'must be later than start')
  if (span.end - span.start > longestEventDays * dayMs)
    throw refuse(`may lie at most ${longestEventDays} days after start`)
  return span
}

/** The same for the same request, and for no other: that of another group, or another one under the same id. */
export function uidFor(parts: readonly unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => hash.slice(from, to))
    .join('-')
}
