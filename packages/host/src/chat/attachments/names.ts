import { quotedStart } from '../../base/visible-text.ts'

/** What files are called: by people and agents, who may call them anything, and by us. */

const longestShown = 200
const longestStored = 100
const longestQuoted = 300
const unnamed = 'file'

/** obeyed and not seen: controls, what turns the direction of a line, line ends, halves of characters */
const unseen = /[\p{C}\p{Zl}\p{Zp}]+/gu

/** A name for people: one line without a path, whatever it was given. */
export function shownName(given: string): string {
  const name = given
    .toWellFormed()
    .normalize()
    .replace(unseen, '_')
    .replace(/^.*[/\\]/s, '')
    .trim()
  return /^\.*$/.test(name) ? unnamed : cutTo(name, longestShown)
}

/** A name in a folder, which no shell and no reader of a path can take for anything else. */
export function storedName(id: string, name: string): string {
  const plain = name.replace(/[^\p{L}\p{M}\p{N}._-]+/gu, '_')
  return `${id}-${cutTo(plain, longestStored)}`
}

/** So many bytes of it; the ending, which says what it is, stays. */
function cutTo(name: string, bytes: number): string {
  if (Buffer.byteLength(name) <= bytes) return name
  const ending = /\.[A-Za-z0-9]{1,16}$/.exec(name)?.[0] ?? ''
  let kept = ''
  for (const character of name) {
    if (Buffer.byteLength(kept + character + ending) > bytes) break
    kept += character
  }
  return kept + ending
}

/** What came from outside, in a sentence. */
export const quotedPath = (path: string): string => quotedStart(path, longestQuoted).text
