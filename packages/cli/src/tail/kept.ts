import type { Row } from './row.ts'

/** The latest rows by their numbers, and never more than `limit` of them for long. */
export interface Kept {
  add(row: Row): void
  all(): readonly Row[]
  /** changes whenever `all` does */
  version(): number
  last(): number
  /** the oldest whose answer has not followed yet */
  oldestOpen(): number | undefined
}

/** The first place whose number is not below `seq`. */
export function placeOf(rows: readonly Pick<Row, 'seq'>[], seq: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((rows[middle]?.seq ?? 0) < seq) low = middle + 1
    else high = middle
  }
  return low
}

export function createKept(limit: number): Kept {
  let rows: Row[] = []
  let version = 0
  const trim = (above: number) => {
    if (rows.length > above) rows = rows.slice(-limit)
  }
  return {
    add(row) {
      version++
      const place = placeOf(rows, row.seq)
      const before = rows[place]
      // Told a second time, for its answer, a command is told without what only the first time knows.
      if (before?.seq === row.seq) rows[place] = { ...row, repeated: row.repeated || before.repeated }
      else if (place === rows.length) rows.push(row)
      else rows.splice(place, 0, row)
      // In bulk: one at a time would move all of them for each command.
      trim(limit + limit / 10)
    },
    all() {
      trim(limit)
      return rows
    },
    version: () => version,
    last: () => rows.at(-1)?.seq ?? 0,
    oldestOpen: () => rows.find(({ decision }) => decision === 'open')?.seq,
  }
}
