import type { CommonOptions } from './options.ts'
import { printJsonArray, printLine, write } from './output.ts'
import type { Column } from './table.ts'

/** Prints a list as it arrives: one JSON array, or a table that fits the terminal. */
export async function printList<T>(
  options: CommonOptions,
  batches: AsyncIterable<readonly T[]>,
  columns: readonly Column<T>[],
  whenEmpty: string,
): Promise<void> {
  if (options.json) return printJsonArray(batches)
  const { createTable } = await import('./table.ts')
  const table = createTable(columns, process.stdout.isTTY ? process.stdout.columns : undefined)
  let empty = true
  for await (const batch of batches) {
    if (batch.length === 0) continue
    empty = false
    await write(await table(batch))
  }
  if (empty) await printLine(whenEmpty)
}

export async function* once<T>(batch: Promise<readonly T[]>): AsyncIterable<readonly T[]> {
  yield await batch
}

/** Local time, to the second; the whole instant is in the JSON. */
export const when = (iso: string | null): string => {
  if (iso === null) return '-'
  const date = new Date(iso)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** Of a run's id, which is long and random; `runs show` takes the beginning of one. */
export const briefId = (id: string): string => id.slice(0, 8)

/** Of what `when` says: without the year and the seconds. */
export const briefTime = (time: string): string => (time.length > 16 ? time.slice(5, 16) : time)
