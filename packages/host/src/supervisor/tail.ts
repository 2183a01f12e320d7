/** The end of what a program printed, however much that was. */
export interface Tail {
  add(chunk: Buffer): void
  text(): string
}

export function createTail(bytes: number): Tail {
  let kept = Buffer.alloc(0)
  let isCut = false
  return {
    add(chunk) {
      const all = Buffer.concat([kept, chunk.subarray(-bytes)])
      isCut ||= kept.length + chunk.length > bytes
      kept = all.subarray(-bytes)
    },
    text() {
      // The first character may be half of one.
      const text = kept.toString('utf8').replace(/^\ufffd+/, '')
      return (isCut ? `…${text}` : text).trim()
    },
  }
}
