import type { Readable } from 'node:stream'
import { type RunStart, runStartSchema } from '@hatchway/protocol'
import { isTimeZone } from '../mcp/local-time.ts'

const largestDocument = 64 * 1024 * 1024

/** The document the host writes to standard input, whole; or, in a sentence, why there is none. */
export async function readStart(stdin: Readable): Promise<RunStart | { problem: string }> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes: Buffer = Buffer.from(chunk)
    size += bytes.length
    if (size > largestDocument) return { problem: 'The start document is larger than 64 MiB.' }
    chunks.push(bytes)
  }
  return parseStart(Buffer.concat(chunks).toString('utf8'))
}

export function parseStart(text: string): RunStart | { problem: string } {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    // The parser's words would quote the document.
    return { problem: 'The start document on standard input is not JSON.' }
  }
  const parsed = runStartSchema.safeParse(document)
  if (!parsed.success) {
    const issues = parsed.error.issues.map(
      ({ path, message }) => `${path.join('.') || 'document'}: ${message}`,
    )
    return { problem: `The start document is not one this runner understands: ${issues.join('; ')}` }
  }
  if (!isTimeZone(parsed.data.timezone)) {
    return { problem: 'The start document is not one this runner understands: timezone: is not known here' }
  }
  return parsed.data
}
