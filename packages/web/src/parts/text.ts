/** Characters that are obeyed and not seen: escapes, and what makes a line read in another direction. */
const obeyed = /(?![\n\t])\p{Cc}|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** What somebody else wrote, as it can be shown: nothing in it hides or moves anything. */
export const visible = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(obeyed, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** On one line, and not longer than that. */
export function shortly(text: string, length = 120): string {
  const line = visible(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > length ? `${line.slice(0, length - 1)}…` : line
}

/** What cannot be read as JSON is shown as it is. */
export function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
