import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createVisibleText, withoutInternal } from './internal.ts'

test.each([
  ['nothing of the kind', 'nothing of the kind'],
  ['  space is kept where nothing is removed ', '  space is kept where nothing is removed '],
  ['<internal>thinking</internal>Hello', 'Hello'],
  ['Hello\n<internal>a\nb</internal>\n', 'Hello'],
  ['a<INTERNAL >x</Internal>b', 'ab'],
  ['<internal>one</internal>a<internal>two</internal>b', 'ab'],
  ['<internal>outer <internal>inner</internal> still</internal>shown', 'shown'],
  ['shown <internal>never closed', 'shown'],
  ['all good</internal> here', 'all good here'],
  ['<internal>everything</internal>', ''],
  ['<internally> is another word', '<internally> is another word'],
  ['1 < 2 and 3 > 2', '1 < 2 and 3 > 2'],
])('%j is shown as %j', (text, shown) => {
  expect(withoutInternal(text)).toBe(shown)
})

test('a text full of beginnings takes no time to speak of', () => {
  expect(withoutInternal('<internal '.repeat(100_000))).toHaveLength(1_000_000)
  expect(withoutInternal('<internal>'.repeat(100_000))).toBe('')
})

const parts = fc.array(
  fc.constantFrom(
    ...[
      '<internal>',
      '</internal>',
      '<INTERNAL x="1">',
      '</Internal >',
      '<internal\n',
      '<intern',
      '</',
      '<',
      '>',
    ],
    ...['al>', 'internal>', ' ', 'words', '🌍', '\ud83c', '\udf0d', '<b>', '<internally>'],
  ),
  { maxLength: 12 },
)

test('text that comes in pieces shows nothing that the whole does not show, wherever it is cut', () => {
  fc.assert(
    fc.property(parts, fc.array(fc.nat()), (words, cuts) => {
      const text = words.join('')
      const at = [...new Set(cuts.map(cut => cut % (text.length + 1)))].sort((a, b) => a - b)
      const pieces = [0, ...at].map((from, i) => text.slice(from, at[i]))
      const visible = createVisibleText()
      let shown = ''
      for (const piece of pieces) {
        shown += visible.take(piece)
        expect(withoutInternal(text).trim().startsWith(shown.trim())).toBe(true)
      }
      // All of it is shown, but for what may still become a tag or a character.
      const rest = /(?:<[^<>]*|[\ud800-\udbff])$/.exec(text)?.[0] ?? ''
      const known = withoutInternal(text.slice(0, text.length - rest.length)).trim()
      expect(shown.trim().startsWith(known)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

test('what was open stays open in the text after it, and half a tag closes it', () => {
  const open = createVisibleText()
  expect(open.take('a<internal>b')).toBe('a')
  open.breakOff()
  expect(open.take('c</internal>d')).toBe('d')
  const cut = createVisibleText()
  expect(cut.take('a<inter')).toBe('a')
  cut.breakOff()
  expect(cut.take('nal>b') + cut.take('c')).toBe('')
})

test('a tag without an end is held back for as long as any tag may be, and closes the text', () => {
  const visible = createVisibleText()
  expect(visible.take(`a<internal ${'x'.repeat(2000)}`)).toBe('a')
  expect(visible.take('<b> after it')).toBe('')
})
