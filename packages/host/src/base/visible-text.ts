/**
 * What an agent wrote, fit to be read by somebody who decides: characters that are obeyed, or hide what is there, are
 * shown as what they are, and all of it stands on one line, so that nothing in it can pass for a line of ours.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u2800\u{1d159}]/gu
const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A character that is not seen, as what it is. */
export const escapedCharacter = (character: string): string => {
  const code = (character.codePointAt(0) ?? 0).toString(16)
  return shortForms[character] ?? (code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`)
}

/** On one line, for a name or a short reason: what is not seen becomes a space. */
export const oneLine = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')

/** What stands between such tags is taken out on the way to people. */
const internalTag = /<(?=\/?internal)/gi

/** For sentences of ours in which somebody else's words stand. */
export const visible = (text: string): string =>
  text.replace(hidden, escapedCharacter).replace(internalTag, '\\u003c')

/**
 * What cannot stand in a quoted value as it is: what ends it or escapes, blanks other than a single space, what is not
 * seen, the bar that begins our lines, and marks piled upon each other, which would reach into other lines.
 */
const unquotable =
  / {2,}|["\\\u2420\u2500-\u257f\u2800\u{1d159}\p{C}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|(?<=^|\p{M}{3})\p{M}/gu
let emoji: RegExp | undefined
const joinsEmoji = /^[\u200d\ufe0f\u{e0020}-\u{e007f}]$/u
/** The longest emoji has fewer characters than this. */
const emojiReach = 40
/** Looking for emoji takes its time; in what is longer than this their parts are shown as what they are. */
const longestWithEmoji = 20_000

/** Whether a character that is not seen is part of a whole emoji. */
const isInEmoji = (text: string, at: number): boolean => {
  const from = Math.max(0, at - emojiReach)
  // The table of all emoji costs each start 40 ms, and few texts need it.
  emoji ??= /\p{RGI_Emoji}/gv
  return [...text.slice(from, at + emojiReach).matchAll(emoji)].some(
    ({ 0: found, index }) => from + index <= at && at < from + index + found.length,
  )
}

const inQuotes = (found: string, at: number, text: string): string => {
  if (found.startsWith('  ')) return `\u2420×${found.length}`
  if (found === '"' || found === '\\') return `\\${found}`
  return text.length <= longestWithEmoji && joinsEmoji.test(found) && isInEmoji(text, at)
    ? found
    : escapedCharacter(found)
}

/** A value as it is, in quotes: two that differ never look the same, and no part of it leaves the quotes. */
export const quoted = (text: string): string =>
  `"${text.replace(unquotable, inQuotes).replace(internalTag, '\\u003c')}"`

/** Some of it, so that what is shown has about so many characters; `more` characters are left out. */
export function quotedStart(text: string, length: number): { text: string; more: number } {
  // Runs of spaces are shorter than what they stand for, escapes are longer.
  const whole = text.length <= Math.max(length, longestWithEmoji) ? quoted(text) : undefined
  if (whole !== undefined && whole.length <= length + 2) return { text: whole, more: 0 }
  let end = Math.min(text.length, length)
  while (end > 0 && quoted(text.slice(0, end)).length > length + 2) end = Math.floor(end * 0.8)
  const start = text.slice(0, end).replace(/[\ud800-\udbff]$/, '')
  return { text: `${quoted(start)}…`, more: text.length - start.length }
}

const plain = /^[\w@:+][\w.@:+-]*$/
const longestName = 120

/** A name in a sentence of ours: as it is where it is plain, else quoted. */
export const named = (text: string): string =>
  plain.test(text) && text.length <= longestName ? text : quotedStart(text, longestName).text

const ordinary = /^(?:[\n\r\t"\\\u2420\u2500-\u257f]| +)$/

/** How many characters of it would not be seen, line breaks and tabs apart. */
export const countHidden = (text: string): number =>
  [...text.matchAll(unquotable)].filter(
    ({ 0: found, index }) => !ordinary.test(found) && inQuotes(found, index, text) !== found,
  ).length
