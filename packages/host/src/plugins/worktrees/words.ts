/** What came out of a sandbox, for people and agents to read: bounded, and nothing in it is hidden or moves a cursor. */
const hidden = /[\p{C}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string =>
  `\\u{${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}}`

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text

export const visibleLine = (text: string, most = 200): string =>
  cut(text, most).toWellFormed().replace(hidden, escaped)

/** The last lines of something long. */
export const visibleEnd = (text: string, most = 2000): string =>
  text
    .slice(-most)
    .toWellFormed()
    .split('\n')
    .map(line => line.replace(/\r$/, '').replaceAll('\t', '  ').replace(hidden, escaped))
    .join('\n')
    .trim()
