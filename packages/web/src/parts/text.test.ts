import { expect, test } from 'vitest'
import { indented, shortly, visible } from './text.ts'

test('what is obeyed and not seen is spelled out; lines and tabs stay', () => {
  expect(visible('a\r\nb\tc')).toBe('a\nb\tc')
  expect(visible('\u001b[31mred\u0007 \u202eevil\u2066x\u2069 \u200f\u0000')).toBe(
    '\\u001b[31mred\\u0007 \\u202eevil\\u2066x\\u2069 \\u200f\\u0000',
  )
})

test('a short form is one line, however many there were', () => {
  expect(shortly(' a\n\n b ', 10)).toBe('a b')
  expect(shortly('x'.repeat(50), 10)).toBe(`${'x'.repeat(9)}…`)
})

test('what is JSON is laid out, and what is not is shown as it is', () => {
  expect(indented('{"a":1}')).toBe('{\n  "a": 1\n}')
  expect(indented('{"a"')).toBe('{"a"')
})
