import { escapedCharacter } from '../../base/visible-text.ts'

/** What came out of a sandbox, for people and agents to read: bounded, and nothing in it is hidden or moves a cursor. */
const hidden = /[\p{C}\p{Zl}\p{Zp}]/gu

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text

export const visibleLine = (text: string, most = 200): string =>
  cut(text, most).toWellFormed().replace(hidden, escapedCharacter)

/** The last lines of something long. */
export const visibleEnd = (text: string, most = 2000): string =>
  text
    .slice(-most)
    .toWellFormed()
    .split('\n')
    .map(line => line.replace(/\r$/, '').replaceAll('\t', '  ').replace(hidden, escapedCharacter))
    .join('\n')
    .trim()
