import { once } from 'node:events'
import { safeJson, visible } from './text.ts'

let needsReader = true

/** EIO: a terminal that was closed. */
const readerIsGone: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO'])

/** A reader that has seen enough, such as `head`, ends the command without an error. */
export function endWithReader(): void {
  const end = (error: NodeJS.ErrnoException) => {
    if (!needsReader) return
    if (!readerIsGone.has(error.code)) throw error
    process.exit(0)
  }
  process.stdout.on('error', end)
  process.stderr.on('error', end)
}

/** For a process whose work is not its output: it continues when nobody reads that, or the disk is full. */
export function outliveReader(): void {
  needsReader = false
}

/** A daemon announces something, and never waits for a reader. */
export function announce(line: string): void {
  outliveReader()
  process.stdout.write(`${line}\n`)
}

/** Waits for a slow reader instead of buffering everything. */
export async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

export const printLine = (line: string) => write(`${line}\n`)
export const printJson = (value: unknown) => write(`${safeJson(value, 2)}\n`)
export const printJsonLine = (value: unknown) => write(`${safeJson(value)}\n`)

/** A remark for people, beside the output. */
export const note = (text: string): void => void process.stderr.write(`hatchway: ${visible(text)}\n`)

/** One JSON array, written while its parts arrive. */
export async function printJsonArray(batches: AsyncIterable<readonly unknown[]>): Promise<void> {
  let separator = '['
  for await (const batch of batches) {
    if (batch.length === 0) continue
    await write(`${separator}\n${batch.map(item => safeJson(item)).join(',\n')}`)
    separator = ','
  }
  await write(separator === '[' ? '[]\n' : '\n]\n')
}
