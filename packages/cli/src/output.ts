import { once } from 'node:events'
import { safeJson } from './text.ts'

let needsReader = true

/** EIO: a terminal that was closed */
const nobodyReads: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO'])

/** Whoever read our output has seen enough: `| head` is not an error, and ends us. */
export function quietBrokenPipe(): void {
  const end = (error: NodeJS.ErrnoException) => {
    if (!needsReader) return
    if (!nobodyReads.has(error.code)) throw error
    process.exit(0)
  }
  process.stdout.on('error', end)
  process.stderr.on('error', end)
}

/** Whatever this process prints, and whether somebody reads it, is not what it is for. */
export function writesInPassing(): void {
  needsReader = false
}

/**
 * For a daemon, whose work is not its output: it goes on when nobody reads that any more, or when it is written to a
 * full disk, and never waits for it.
 */
export function sayInPassing(line: string): void {
  writesInPassing()
  process.stdout.write(`${line}\n`)
}

/** Waits for a slow reader instead of keeping everything for it. */
export async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

export const printLine = (line: string) => write(`${line}\n`)
export const printJson = (value: unknown) => write(`${safeJson(value, 2)}\n`)
export const printJsonLine = (value: unknown) => write(`${safeJson(value)}\n`)

/** One JSON array, written as its parts arrive. */
export async function printJsonArray(batches: AsyncIterable<readonly unknown[]>): Promise<void> {
  let separator = '['
  for await (const batch of batches) {
    if (batch.length === 0) continue
    await write(`${separator}\n${batch.map(item => safeJson(item)).join(',\n')}`)
    separator = ','
  }
  await write(separator === '[' ? '[]\n' : '\n]\n')
}
