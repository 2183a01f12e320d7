/**
 * Text from agents on a person's terminal. Escape sequences could rewrite the screen or the clipboard, direction marks
 * could make a line read as another one, and invisible characters could hide what is there: all of them are shown as
 * what they are.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u{1bca0}-\u{1bca3}]/gu

/** Joins the parts of one picture, as in 👩‍🚀; anywhere else it only hides. */
const joiner = '\u200d'
const picture = /\p{Extended_Pictographic}\ufe0f?(?:[\u{1f3fb}-\u{1f3ff}])?$/u
const startsPicture = /^\p{Extended_Pictographic}/u

const shortForms: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const escaped = (character: string): string => {
  const short = shortForms[character]
  if (short !== undefined) return short
  const code = (character.codePointAt(0) ?? 0).toString(16)
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
}

/** On one line. */
export const visible = (text: string): string =>
  text.replace(hidden, (character, offset: number) =>
    character === joiner &&
    picture.test(text.slice(Math.max(0, offset - 8), offset)) &&
    startsPicture.test(text.slice(offset + 1, offset + 3))
      ? character
      : escaped(character),
  )

/** JSON that says the same and can be shown on a terminal: JSON itself lets all but the oldest controls through. */
export const safeJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(hidden, character =>
    character === '\n'
      ? character
      : character
          .split('')
          .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  )
