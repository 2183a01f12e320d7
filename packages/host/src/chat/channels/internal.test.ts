import { expect, test } from 'vitest'
import { withoutInternal } from './internal.ts'

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
