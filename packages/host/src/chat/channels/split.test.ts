import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitText } from './split.ts'

const withoutSpace = (text: string) => text.replace(/\s/g, '')
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const bordersOf = (text: string) =>
  new Set([...graphemes.segment(text)].map(({ index }) => index).concat(text.length))

/** Where each part lies in the text. */
function placesOf(text: string, parts: readonly string[]): { from: number; to: number }[] {
  let from = 0
  return parts.map(part => {
    const at = text.indexOf(part, from)
    expect(at).toBeGreaterThanOrEqual(from)
    from = at + part.length
    return { from: at, to: from }
  })
}

/** Everyday text and everything people stick together: flags, families, accents, letters beyond the first plane. */
const everyday = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom('word', 'a', 'schön', 'long-winded', '寿限無', 'e\u0301') },
      { weight: 4, arbitrary: fc.constantFrom(' ', '\n', '\n\n', '\r\n', '  ', '\t') },
      { weight: 1, arbitrary: fc.constantFrom('👩‍🚀', '🇵🇹🇯🇵', '👍🏽', '𝒳', 'क्षि', '🏴‍☠️') },
    ),
    { maxLength: 60 },
  )
  .map(pieces => pieces.join(''))

test('whatever the text, no part is too long or blank, and only white space is left out', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.integer({ min: 2, max: 40 }),
      (text, limit) => {
        const parts = splitText(text, limit)
        for (const part of parts) {
          expect(part.length).toBeLessThanOrEqual(limit)
          expect(part.trim()).not.toBe('')
          expect(part.isWellFormed()).toBe(true)
        }
        expect(withoutSpace(parts.join(''))).toBe(withoutSpace(text))
        placesOf(text, parts)
      },
    ),
    { numRuns: 500 },
  )
})

test('what a reader sees as one character is never cut in everyday text', () => {
  fc.assert(
    fc.property(everyday, fc.integer({ min: 16, max: 60 }), (text, limit) => {
      const parts = splitText(text, limit)
      const borders = bordersOf(text)
      for (const { from, to } of placesOf(text, parts)) {
        expect(borders.has(from)).toBe(true)
        expect(borders.has(to)).toBe(true)
      }
      expect(withoutSpace(parts.join(''))).toBe(withoutSpace(text))
    }),
    { numRuns: 500 },
  )
})

test('a text that fits stays as it is, and a blank one is nothing', () => {
  expect(splitText('  as it is \n', 100)).toEqual(['  as it is \n'])
  expect(splitText('x'.repeat(100), Number.POSITIVE_INFINITY)).toHaveLength(1)
  expect(splitText(' \n ', 100)).toEqual([])
  expect(splitText(' '.repeat(100), 10)).toEqual([])
})

test('paragraphs are kept before lines, lines before words, words before letters', () => {
  expect(splitText('one two\n\nthree four\nfive', 20)).toEqual(['one two', 'three four\nfive'])
  expect(splitText('one two three\nfour five six', 20)).toEqual(['one two three', 'four five six'])
  expect(splitText('one two three four five', 12)).toEqual(['one two', 'three four', 'five'])
  expect(splitText('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
})

test('the indentation of the next line is part of it', () => {
  expect(splitText('function f() {\n  return 1\n}', 18)).toEqual(['function f() {', '  return 1\n}'])
})

test('one character that is longer than a message is cut between its code points', () => {
  const parts = splitText(`a${'\u0301'.repeat(50)}`, 20)
  expect(parts.every(part => part.length <= 20)).toBe(true)
  expect(parts.join('')).toHaveLength(51)
})

test('a very long text takes no time to speak of', () => {
  const parts = splitText('word '.repeat(200_000), 4096)
  expect(parts.length).toBeGreaterThan(240)
  expect(splitText('\n '.repeat(200_000), 4096)).toEqual([])
  expect(splitText('x'.repeat(1_000_000), 4096).join('')).toHaveLength(1_000_000)
})
