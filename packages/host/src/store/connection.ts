import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'

/** The one connection, as the parts of the store share it. */
export interface Connection {
  /** prepared when it is first used, and once */
  sql(text: string): StatementSync
  /** makes all of `work` durable, or nothing */
  atomically<T>(work: () => T): T
  /** told after a transaction was taken back: what a table keeps in memory may no longer be true */
  onRollback(forget: () => void): void
}

export function preparedOnce(database: DatabaseSync): Connection['sql'] {
  const prepared = new Map<string, StatementSync>()
  return text => {
    let statement = prepared.get(text)
    if (!statement) {
      statement = database.prepare(text)
      prepared.set(text, statement)
    }
    return statement
  }
}

/** How many rows there are, and what they hold. */
export interface Size {
  count: number
  bytes: number
}

export const sizeIn = (row: Record<string, unknown> | undefined): Size => ({
  count: Number(row?.count ?? 0),
  bytes: Number(row?.bytes ?? 0),
})

/** A stretch of a table, in its order; whether it was cut short, by the number of rows or by what they hold. */
export interface Stretch<T> {
  rows: T[]
  more: boolean
}

/**
 * Rows until there are so many, or until their texts have so many characters together, and one in any case: a text may
 * be a megabyte, and a hundred of them must not be read into memory because somebody asked for a hundred.
 */
export function stretchOf<T extends { text: string }>(
  rows: Iterable<T>,
  limit: number,
  characters: number,
): Stretch<T> {
  const taken: T[] = []
  let held = 0
  for (const row of rows) {
    if (taken.length >= limit || held >= characters) return { rows: taken, more: true }
    taken.push(row)
    held += row.text.length
  }
  return { rows: taken, more: false }
}

/** Conditions that were asked for, joined; those without a value are left out, `true` is for one that needs none. */
export function where(conditions: Readonly<Record<string, SQLInputValue | true | undefined>>): {
  text: string
  values: SQLInputValue[]
} {
  const given = Object.entries(conditions).filter(entry => entry[1] !== undefined)
  return {
    text: given.length === 0 ? '' : `WHERE ${given.map(([condition]) => condition).join(' AND ')}`,
    values: given.flatMap(([, value]) => (value === undefined || value === true ? [] : [value])),
  }
}
