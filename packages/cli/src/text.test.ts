import { expect, test } from 'vitest'
import { quoted } from './facts.ts'
import { safeJson, visible } from './text.ts'

test.each([
  ['an escape sequence', '\u001b[2J\u001b]52;c;cm0=\u0007', '\\u001b[2J\\u001b]52;c;cm0=\\u0007'],
  ['the one-character form of an escape', '\u009b31m', '\\u009b31m'],
  ['a carriage return and a backspace', 'safe\r\b\bevil', 'safe\\r\\u0008\\u0008evil'],
  ['line breaks and tabs', 'a\nb\tc\u2028d\u2029e\u0085f', 'a\\nb\\tc\\u2028d\\u2029e\\u0085f'],
  ['direction overrides and isolates', 'a\u202eb\u2066c\u200fd\u061ce', 'a\\u202eb\\u2066c\\u200fd\\u061ce'],
  ['what takes no space', 'pay\u200bpal\ufeff\u2060\u00ad', 'pay\\u200bpal\\ufeff\\u2060\\u00ad'],
  ['letters that look like nothing', 'a\u3164b\u115fc', 'a\\u3164b\\u115fc'],
  ['hidden tags', 'x\u{e0041}\u{e007f}', 'x\\u{e0041}\\u{e007f}'],
  ['a joiner that joins no pictures', 'a\u200db', 'a\\u200db'],
  ['private and unassigned characters', '\ue000\u{10ffff}\u0378', '\\ue000\\u{10ffff}\\u0378'],
  ['delete and null', '\u007f\u0000', '\\u007f\\u0000'],
  ['half a pair', 'x\ud800y', 'x\\ud800y'],
])('%s is shown as what it is', (_, text, shown) => {
  expect(visible(text)).toBe(shown)
})

test('ordinary text stays as it is', () => {
  const text = 'Grüße, 日本語, שלום, café, 👩‍🚀 🏳️‍🌈 👨‍👩‍👧‍👦 👩🏽‍🚀, C:\\dir, "quoted"'
  expect(visible(text)).toBe(text)
})

test('lines of a file are marked and escaped one by one', () => {
  expect(quoted('{\r\n  "a": "\u001b[0m"\n}')).toEqual(['│ {', '│   "a": "\\u001b[0m"', '│ }'])
})

test('JSON for a terminal has nothing hidden in it and means the same', () => {
  const value = { text: '\u001b[31m \u009b \u202e \u2028 \u{e0041} é 👩‍🚀 \ud800', list: ['\u007f'] }
  const json = safeJson(value, 2)
  expect(JSON.parse(json)).toEqual(value)
  expect(json.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
})
