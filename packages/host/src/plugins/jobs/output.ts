/**
 * What a job prints, kept within a number of bytes however much it is: the first half as it comes, and after that the
 * last half in a ring, so that a flood costs a copy and no memory.
 */
export interface Output {
  add(chunk: Buffer): void
  /** with a line where something is missing, and how many bytes that is */
  read(): { text: string; dropped: number }
}

export function createOutput(limit: number): Output {
  const headRoom = Math.ceil(limit / 2)
  const tailRoom = limit - headRoom
  let head = Buffer.alloc(Math.min(headRoom, 4096))
  let headLength = 0
  let tail: Buffer | undefined
  /** of all that came after the head */
  let behind = 0

  // Pieces are copied together: each by itself would keep the block it was read into.
  const keepHead = (chunk: Buffer) => {
    const needed = headLength + chunk.length
    if (needed > head.length) {
      const larger = Buffer.alloc(Math.min(headRoom, Math.max(needed, 2 * head.length)))
      head.copy(larger, 0, 0, headLength)
      head = larger
    }
    chunk.copy(head, headLength)
    headLength = needed
  }
  const keepTail = (chunk: Buffer) => {
    tail ??= Buffer.alloc(tailRoom)
    const last = chunk.subarray(Math.max(0, chunk.length - tailRoom))
    const at = (behind + chunk.length - last.length) % tailRoom
    const fits = last.copy(tail, at)
    last.copy(tail, 0, fits)
    behind += chunk.length
  }

  return {
    add(chunk) {
      const first = chunk.subarray(0, headRoom - headLength)
      keepHead(first)
      if (first.length < chunk.length) keepTail(chunk.subarray(first.length))
    },
    read() {
      const beginning = head.subarray(0, headLength)
      if (!tail || behind <= tailRoom) {
        return { text: textOf(Buffer.concat([beginning, (tail ?? empty).subarray(0, behind)])), dropped: 0 }
      }
      const at = behind % tailRoom
      const first = withoutHalfLetter(beginning)
      const last = fromWholeLetter(Buffer.concat([tail.subarray(at), tail.subarray(0, at)]))
      const dropped = headLength + behind - first.length - last.length
      return { text: `${textOf(first)}\n[${dropped} bytes are left out here]\n${textOf(last)}`, dropped }
    },
  }
}

const empty = Buffer.alloc(0)

/** What is no text is shown as what it is not; a zero byte would end the text for others. */
const textOf = (bytes: Buffer): string => bytes.toString('utf8').replaceAll('\0', '\ufffd')

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The longest letter has four bytes, of which up to three may be missing. */
function withoutHalfLetter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes
  }
  return bytes
}

function fromWholeLetter(bytes: Buffer): Buffer {
  let from = 0
  while (from < 3 && isContinuation(bytes[from])) from++
  return bytes.subarray(from)
}
