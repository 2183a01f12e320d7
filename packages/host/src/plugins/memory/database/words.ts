/**
 * What counts as a word, in any script. Saved text and queries go through the same two steps: letters that people
 * write one way or another are made alike, then the text is parted.
 *
 * - Scripts with spaces: the word.
 * - Chinese, Japanese, Korean: each character, and each two that stand side by side. Most words have two.
 * - Thai, Lao, Khmer, Burmese, Tibetan: two and three letters side by side, as nothing shows where a word ends.
 * - Emoji: each one.
 *
 * A word has letters, digits, marks and emoji only, so nothing in it can be syntax of a full-text query.
 */

/** Accents and vowel points that may be left out. Other marks are vowels (Indic, Thai) or change a consonant (kana). */
const optional =
  /[[\p{M}&&[\p{sc=Inherited}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}\p{sc=Cyrillic}]]--[\u3099\u309A]]|\p{Cf}|\u0640/gv

/** Letters of more than one form that Unicode does not take apart. */
const oneForm = new Map([
  ['ø', 'o'],
  ['ł', 'l'],
  ['đ', 'd'],
  ['ð', 'd'],
  ['þ', 'th'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ħ', 'h'],
  ['ς', 'σ'],
  ['\u0649', '\u064A'],
  ['\u06CC', '\u064A'],
  ['\u0629', '\u0647'],
  ['\u06A9', '\u0643'],
])
const manyForms = new RegExp(`[${[...oneForm.keys()].join('')}]`, 'gv')
/** Arabic, Persian and Thai digits: their last four bits are their value. */
const otherDigits = /[\u0660-\u0669\u06F0-\u06F9\u0E50-\u0E59]/gv

/** Upper case comes first, for ß is SS there and ı is I. Composed again at the end, so that Korean syllables are whole. */
export const alike = (text: string): string =>
  text
    .toWellFormed()
    .normalize('NFKD')
    .replace(optional, '')
    .toUpperCase()
    .toLowerCase()
    .replace(manyForms, letter => oneForm.get(letter) ?? letter)
    .replace(otherDigits, digit => String((digit.codePointAt(0) ?? 0) & 0xf))
    .normalize('NFC')

const symbols = String.raw`[\p{L}\p{M}\p{N}]`
const characters = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}]`
const letters = String.raw`[\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]`
const emoji = String.raw`\p{RI}{2}|\p{ExtPict}`
const runs = new RegExp(
  `(?<characters>[${characters}&&${symbols}]+)|(?<letters>[${letters}&&${symbols}]+)|[${symbols}--[${characters}${letters}]]+|${emoji}`,
  'gv',
)
const withoutSpaces = new RegExp(`^[${characters}${letters}]`, 'v')

/** A longer one is no word anybody asks for, but a key or a picture in letters. */
const longestWord = 64

/** Every `size` symbols of a run that stand side by side. */
function sideBySide(run: readonly string[], size: number): string[] {
  const found: string[] = []
  for (let start = 0; start + size <= run.length; start++) found.push(run.slice(start, start + size).join(''))
  return found
}

function* partsOf(text: string): Generator<{ run: string; sizes?: readonly [number, number] }> {
  for (const match of alike(text).matchAll(runs)) {
    if (match.groups?.characters !== undefined) yield { run: match[0], sizes: [1, 2] }
    else if (match.groups?.letters !== undefined) yield { run: match[0], sizes: [2, 3] }
    else yield { run: match[0].slice(0, longestWord).toWellFormed() }
  }
}

/** The words a text is found by, in their order, each as often as it is there. */
export function wordsIn(text: string): string[] {
  const words: string[] = []
  for (const { run, sizes } of partsOf(text)) {
    if (sizes === undefined) words.push(run)
    else {
      const symbolsOfRun = [...run]
      for (const size of sizes) words.push(...sideBySide(symbolsOfRun, size))
    }
  }
  return words
}

/** The words to look for, each once: of a run without spaces the longest pieces that are kept. */
export function wordsAskedFor(query: string): string[] {
  const words = new Set<string>()
  for (const { run, sizes } of partsOf(query)) {
    if (sizes === undefined) words.add(run)
    else {
      const symbolsOfRun = [...run]
      for (const piece of sideBySide(symbolsOfRun, Math.min(sizes[1], symbolsOfRun.length))) words.add(piece)
    }
  }
  return [...words]
}

/** Whether other words can hold it, or it them: pieces of scripts without spaces are found as they are. */
export const hasForms = (word: string): boolean => word.length >= 3 && !withoutSpaces.test(word)

/** The Arabic article with the conjunction or preposition that is written with it; undefined: there is none. */
export function withoutArticle(word: string): string | undefined {
  const bare = word.replace(/^(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=.{3})/v, '')
  return bare === word ? undefined : bare
}
