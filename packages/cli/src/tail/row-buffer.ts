import type { Row } from './row.ts'

/** The latest rows, sorted by number, at most about `limit` of them. */
export interface RowBuffer {
  add(row: Row): void
  all(): readonly Row[]
  /** changes whenever `all` does */
  version(): number
  last(): number
  /** the oldest row that waits for its answer */
  oldestOpen(): number | undefined
}

/** The index of the first row whose number is not below `seq`. */
export function indexOfSeq(rows: readonly Pick<Row, 'seq'>[], seq: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((rows[middle]?.seq ?? 0) < seq) low = middle + 1
    else high = middle
  }
  return low
}

export function createRowBuffer(limit: number): RowBuffer {
  let rows: Row[] = []
  let version = 0
  const trim = (above: number) => {
    if (rows.length > above) rows = rows.slice(-limit)
  }
  return {
    add(row) {
      version++
      const index = indexOfSeq(rows, row.seq)
      const before = rows[index]
      // A command is sent again with its answer, and then without the mark that it was repeated.
      if (before?.seq === row.seq) rows[index] = { ...row, repeated: row.repeated || before.repeated }
      else if (index === rows.length) rows.push(row)
      else rows.splice(index, 0, row)
      // In bulk: removing one at a time would move all rows for each command.
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
