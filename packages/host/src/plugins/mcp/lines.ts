/** The two ends of a line that is too long to keep: enough to see what it is the answer to. */
export interface Ends {
  head: string
  tail: string
}

export interface LineReader {
  line(line: Buffer): void
  /** it was longer than the limit and has gone by */
  tooLong(ends: Ends): void
  /** it does not end at all */
  endless(): void
}

const endBytes = 512
/** What is this many times the limit is not waited for any longer. */
const patience = 16

/** Cuts what comes in pieces into lines, and never holds more than one line of the limit. */
export function cutLines(limitBytes: number, reader: LineReader): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let size = 0
  let ends: { head: Buffer; tail: Buffer } | undefined

  const take = (piece: Buffer) => {
    size += piece.length
    if (!ends && size <= limitBytes) {
      parts.push(piece)
      return
    }
    ends ??= { head: Buffer.concat([...parts, piece], Math.min(size, endBytes)), tail: lastBytes(parts) }
    parts = []
    ends.tail = Buffer.concat([ends.tail, piece.subarray(-endBytes)]).subarray(-endBytes)
  }

  const finish = () => {
    if (ends) reader.tooLong({ head: ends.head.toString('utf8'), tail: ends.tail.toString('utf8') })
    else reader.line(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts))
    parts = []
    size = 0
    ends = undefined
  }

  return chunk => {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      take(chunk.subarray(from, end))
      finish()
      from = end + 1
    }
    if (from < chunk.length) take(chunk.subarray(from))
    if (size > limitBytes * patience) reader.endless()
  }
}

function lastBytes(parts: readonly Buffer[]): Buffer {
  let kept = Buffer.alloc(0)
  for (let at = parts.length - 1; at >= 0 && kept.length < endBytes; at--)
    kept = Buffer.concat([parts[at]?.subarray(-endBytes) ?? Buffer.alloc(0), kept])
  return kept.subarray(-endBytes)
}

/** Which request a message answers, as far as its two ends tell: servers write the id first or last. */
export function requestOf({ head, tail }: Ends): number | undefined {
  const found =
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/.exec(head) ??
    /"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail)
  return found?.[1] === undefined ? undefined : Number(found[1])
}
