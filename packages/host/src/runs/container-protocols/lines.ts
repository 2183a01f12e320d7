/** So long a line is nobody's message, and must not fill the host's memory. */
const lineLimit = 2_000_000

/** Cuts text that comes in pieces into lines. The rest of a line that is too long is dropped. */
export function createLines(): (chunk: string) => string[] {
  let rest = ''
  let dropping = false
  return chunk => {
    const lines: string[] = []
    let from = 0
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      if (!dropping) lines.push(rest + chunk.slice(from, end))
      rest = ''
      dropping = false
      from = end + 1
    }
    if (dropping) return lines
    rest += chunk.slice(from)
    if (rest.length > lineLimit) {
      rest = ''
      dropping = true
    }
    return lines
  }
}
