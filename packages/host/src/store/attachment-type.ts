import { isUtf8 } from 'node:buffer'

/** as much of a file as its type is told by */
export const headBytes = 65_536

export const unknownType = 'application/octet-stream'

/** What a browser may show in the page: pictures that hold nothing but a picture. */
export const inlineTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
])

const signatures: readonly { type: string; matches(head: Buffer): boolean }[] = [
  {
    type: 'image/png',
    matches: head =>
      head.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])),
  },
  { type: 'image/jpeg', matches: head => head.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff])) },
  { type: 'image/gif', matches: head => /^GIF8[79]a/.test(head.toString('latin1', 0, 6)) },
  {
    type: 'image/webp',
    matches: head => head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WEBP',
  },
  { type: 'application/pdf', matches: head => head.toString('latin1', 0, 5) === '%PDF-' },
  { type: 'audio/ogg', matches: head => head.toString('latin1', 0, 4) === 'OggS' },
  { type: 'text/plain', matches: isText },
]

/** By its first bytes; what it is called does not count. Markup is text, and is never shown as anything else. */
export const typeOf = (head: Buffer): string =>
  signatures.find(({ matches }) => matches(head))?.type ?? unknownType

function isText(head: Buffer): boolean {
  if (head.length === 0) return true
  // The head may end within a character.
  const whole =
    head.length < headBytes ? [head] : [0, 1, 2, 3].map(cut => head.subarray(0, head.length - cut))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return whole.some(isUtf8) && !/[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]/.test(head.toString('latin1'))
}
