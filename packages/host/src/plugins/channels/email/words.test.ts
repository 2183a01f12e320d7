import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textOfHtml, withoutHistory } from './words.ts'

test.each([
  ['<p>Hello <b>Ann</b>,</p><p>how&nbsp;are&#32;you&#x3f;</p>', 'Hello Ann,\n\nhow are you?'],
  ['one<br>two<br/>three', 'one\ntwo\nthree'],
  ['<ul><li>tea</li><li>milk</li></ul>', '• tea\n\n• milk'],
  ['<style>p { color: red }</style><script>alert("<p>")</script>seen<!-- <p>not seen</p> -->', 'seen'],
  ['<head><title>No</title></head><body>yes</body>', 'yes'],
  [
    '<a href="https://evil.example/x?a=1&amp;b=2">https://bank.example</a>',
    'https://bank.example (https://evil.example/x?a=1&b=2)',
  ],
  [
    '<a href="https://a.example">https://a.example</a> <a href="javascript:alert(1)">x</a>',
    'https://a.example x',
  ],
  ['yes<blockquote>said<blockquote>before</blockquote></blockquote>', 'yes\n> said\n> > before'],
  ['a < b, 2 > 1, &unknown; &lt;b&gt; &#0; &#xD800;', 'a < b, 2 > 1, &unknown; <b> \ufffd \ufffd'],
  ['never <closed', 'never <closed'],
  ['<script>never closed <p>hidden</p>', ''],
  ['<img alt="A cat" src="https://tracker.example/1.png">', 'A cat'],
])('HTML becomes text: %j', (html, text) => {
  expect(textOfHtml(html)).toBe(text)
})

test('odd HTML takes no longer than its length, and leaves no tags', () => {
  for (const piece of ['<', '<a ', '<!--', '<script>', '<blockquote>', '&#', '</', '<a href="https:'])
    expect(textOfHtml(piece.repeat(50_000)).length).toBeLessThan(5_000_000)
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('<', '>', 'p', '/', '!--', '-->', 'a', ' ', '"', '=') }),
      html => {
        expect(typeof textOfHtml(html)).toBe('string')
      },
    ),
  )
})

const time = 'On Tue, 17 Nov 2026 at 10:15, Hatch <hatch@agents.test> wrote:'

test.each([
  ['at the end', `yes\n\n${time}\n> Tea?\n> \n> Really?\n`, 'yes', 'Tea?\n\nReally?'],
  [
    'in two lines',
    'yes\n\nAm 17.11.2026 um 10:15 schrieb Hatch\n<hatch@agents.test>:\n> Tea?',
    'yes',
    'Tea?',
  ],
  ['without an introduction', 'yes\n> Tea?', 'yes', 'Tea?'],
  ['behind a line', 'yes\n\n-----Original Message-----\nFrom: Hatch\n\nTea?', 'yes', 'From: Hatch\n\nTea?'],
])('the mail that was answered is split off: %s', (_, text, own, history) => {
  expect(withoutHistory(text)).toEqual({ text: own, history })
})

test.each([
  ['nothing is quoted', 'yes\n\nsee you'],
  ['somebody wrote below it', `${time}\n> Tea?\n\nyes`],
  ['somebody wrote between', '> Tea?\nyes\n> Milk?\nno'],
  ['it is all there is', '> Tea?'],
])('it stays where %s', (_, text) => {
  expect(withoutHistory(text)).toEqual({ text, history: undefined })
})

test('words before a quotation that introduce something else stay', () => {
  expect(withoutHistory('I have two remarks:\n> Tea?').text).toBe('I have two remarks:')
  expect(withoutHistory(`Meet me at 10:15:\n\n${time}\n> Tea?`).text).toBe('Meet me at 10:15:')
})
