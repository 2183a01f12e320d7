/**
 * Whether a text that is not JSON could still become one JSON object if its writer went on writing. Runs only on
 * text that JSON.parse has refused, so it is made to be plain, not fast. What it walks through:
 *
 *   document → firstKey → colon → value → next → key → colon → …   inside an object
 *              firstValue → next → value → …                      inside an array
 *   and from the last bracket to `done`, after which only space may follow.
 */
type Expected = 'document' | 'firstKey' | 'key' | 'colon' | 'firstValue' | 'value' | 'next' | 'done'

/** Where a token ends, or why it has no end. */
type End = number | 'cut' | 'broken'

const space = /[ \t\n\r]/
const hexDigit = /[0-9a-fA-F]/
const numberCharacter = /[-+.0-9eE]/
const wholeNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/
const words = ['true', 'false', 'null']

const stringEnd = (text: string, start: number): End => {
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '"') return at + 1
    if (character < ' ') return 'broken'
    if (character !== '\\') continue
    at++
    if (at === text.length) return 'cut'
    const escaped = text.charAt(at)
    if (escaped !== 'u') {
      if (!'"\\/bfnrt'.includes(escaped)) return 'broken'
      continue
    }
    for (const last = at + 4; at < last; at++) {
      if (at + 1 === text.length) return 'cut'
      if (!hexDigit.test(text.charAt(at + 1))) return 'broken'
    }
  }
  return 'cut'
}

const numberEnd = (text: string, start: number): End => {
  let end = start
  while (end < text.length && numberCharacter.test(text.charAt(end))) end++
  const token = text.slice(start, end)
  if (wholeNumber.test(token)) return end
  // a number that is cut short lacks digits, and nothing else
  return end === text.length && wholeNumber.test(`${token}0`) ? 'cut' : 'broken'
}

const wordEnd = (text: string, start: number): End => {
  for (const word of words) {
    if (text.startsWith(word, start)) return start + word.length
    if (word.startsWith(text.slice(start, start + word.length))) return 'cut'
  }
  return 'broken'
}

export const isCutShort = (text: string): boolean => {
  const inObject: boolean[] = []
  let expected: Expected = 'document'
  let at = 0
  while (at < text.length) {
    const character = text.charAt(at)
    if (space.test(character)) {
      at++
      continue
    }
    const closes: boolean =
      (character === '}' && inObject.at(-1) === true && (expected === 'next' || expected === 'firstKey')) ||
      (character === ']' && inObject.at(-1) === false && (expected === 'next' || expected === 'firstValue'))
    if (closes) {
      inObject.pop()
      expected = inObject.length === 0 ? 'done' : 'next'
      at++
    } else if (expected === 'next') {
      if (character !== ',') return false
      expected = inObject.at(-1) ? 'key' : 'value'
      at++
    } else if (expected === 'colon') {
      if (character !== ':') return false
      expected = 'value'
      at++
    } else if (expected === 'firstKey' || expected === 'key') {
      if (character !== '"') return false
      const end = stringEnd(text, at)
      if (typeof end !== 'number') return end === 'cut'
      expected = 'colon'
      at = end
    } else if (character === '{' && expected !== 'done') {
      inObject.push(true)
      expected = 'firstKey'
      at++
    } else if (expected === 'document' || expected === 'done') {
      return false
    } else if (character === '[') {
      inObject.push(false)
      expected = 'firstValue'
      at++
    } else {
      const tokenEnd = character === '"' ? stringEnd : numberCharacter.test(character) ? numberEnd : wordEnd
      const end = tokenEnd(text, at)
      if (typeof end !== 'number') return end === 'cut'
      expected = 'next'
      at = end
    }
  }
  return expected !== 'done'
}
