import fc from 'fast-check'
import { marked } from 'marked'
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

/** What people see of each part, as it is rendered by itself: words of code, and any others. */
const shownOf = (parts: readonly string[]) => {
  const tokens = parts.flatMap(part => marked.lexer(part, { gfm: true }))
  const words = (kind: 'code' | 'prose') =>
    tokens
      .filter(({ type }) => (type === 'code') === (kind === 'code'))
      .flatMap(token => ('text' in token ? String(token.text) : token.raw).split(/\s+/).filter(Boolean))
  return { code: words('code'), prose: words('prose') }
}

test('a block of code that fits into a message is not cut', () => {
  const block = '```js\nconst a = 1\n\nconst b = a * 2\n```'
  expect(splitText(`Here you are:\n\n${block}\n\nThat is all.`, 52)).toEqual([
    'Here you are:',
    `${block}\n\nThat is all.`,
  ])
  // It ends its part, too, rather than what comes behind it.
  expect(splitText(`${block}\nand many more words behind it`, 50)).toEqual([
    block,
    'and many more words behind it',
  ])
})

test('a longer one is closed at the cut and opened again, in its language', () => {
  expect(splitText('So:\n```js title="a.js"\none()\ntwo()\nthree()\nfour()\n```\nDone.', 40)).toEqual([
    'So:\n```js title="a.js"\none()\ntwo()\n```',
    '```js\nthree()\nfour()\n```\nDone.',
  ])
  // Shorter fences are part of the code.
  expect(splitText('~~~~\n~~~\none\n```\ntwo two two\n~~~~\nDone.', 24)).toEqual([
    '~~~~\n~~~\none\n```\n~~~~',
    '~~~~\ntwo two two\n~~~~',
    'Done.',
  ])
  // What nobody has closed is code to its end.
  expect(splitText('```\none one one\ntwo two two\nthree', 24)).toEqual([
    '```\none one one\n```',
    '```\ntwo two two\nthree',
  ])
})

test('where a cut block stood in a list, its next part does not', () => {
  expect(splitText('1. Run\n   ```sh\n   first\n     second\n   third\n   ```\n2. Go', 37)).toEqual([
    '1. Run\n   ```sh\n   first\n   ```',
    '```sh\n  second\nthird\n```\n2. Go',
  ])
})

test('a link or emphasis of a few words stays in one part', () => {
  expect(splitText('It is said [over there](https://example.org) today', 45)).toEqual([
    'It is said [over there](https://example.org)',
    'today',
  ])
  for (const mark of ['**', '_', '~~', '`']) {
    const marked = `${mark}three more words${mark}`
    expect(splitText(`some words and ${marked} at the end`, 26)).toEqual([
      'some words and',
      ...(mark.length > 1 ? [marked.concat(' at'), 'the end'] : [`${marked} at the`, 'end']),
    ])
  }
})

test('what is shown to the letter is cut as it is, and nothing is added', () => {
  const text = `\`\`\`js\n${'word '.repeat(20)}\n\`\`\``
  const parts = splitText(text, 40, { isExact: true })
  expect(withoutSpace(parts.join(''))).toBe(withoutSpace(text))
})

test('whatever is around blocks of code, all of their words are shown as code, and no others are', () => {
  const words = (given: string) =>
    fc.array(fc.constantFrom(given, `${given}()`, '*', '_x_'), { minLength: 1, maxLength: 6 })
  const line = (given: string) => words(given).map(all => [given, ...all].join(' '))
  const prose = fc.array(line('prose'), { minLength: 1, maxLength: 4 }).map(lines => lines.join('\n'))
  const code = fc
    .tuple(
      fc.constantFrom('```', '````', '~~~'),
      fc.constantFrom('', 'js', 'python'),
      fc.array(fc.oneof(line('code'), line('  code'), fc.constant('')), { minLength: 1, maxLength: 12 }),
    )
    .map(([fence, language, lines]) => `${fence}${language}\n${lines.join('\n')}\n${fence}`)
  const text = fc
    .array(fc.oneof(prose, code), { maxLength: 8 })
    .chain(pieces => fc.constantFrom('\n', '\n\n').map(between => pieces.join(between)))
  fc.assert(
    fc.property(text, fc.integer({ min: 60, max: 300 }), (text, limit) => {
      const parts = splitText(text, limit)
      for (const part of parts) expect(part.length).toBeLessThanOrEqual(limit)
      const { code, prose } = shownOf(parts)
      expect(code).toEqual(shownOf([text]).code)
      expect(prose).toEqual(shownOf([text]).prose)
    }),
    { numRuns: 500 },
  )
})

test('a very long block of code takes no time to speak of', () => {
  const code = '  code code code\n'.repeat(50_000)
  expect(splitText(`\`\`\`js\n${code}\`\`\``, 400).length).toBeGreaterThan(2000)
  expect(splitText(`1. \`\`\`js\n${code}   \`\`\``, 400).length).toBeGreaterThan(1000)
  expect(splitText('```\n'.repeat(200_000), 4096).length).toBeGreaterThan(100)
  expect(splitText('*a '.repeat(300_000), 10_000).length).toBeGreaterThan(80)
})
