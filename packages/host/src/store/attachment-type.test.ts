import { expect, test } from 'vitest'
import { headBytes, inlineTypes, typeOf } from './attachment-type.ts'

const bytes = (...values: (number | string)[]) =>
  Buffer.concat(
    values.map(value => (typeof value === 'number' ? Buffer.from([value]) : Buffer.from(value, 'latin1'))),
  )

test.each([
  ['image/png', bytes(0x89, 'PNG\r\n', 0x1a, '\n', 'rest')],
  ['image/jpeg', bytes(0xff, 0xd8, 0xff, 0xe0)],
  ['image/gif', bytes('GIF89a', 1, 0)],
  ['image/webp', bytes('RIFF', 1, 2, 3, 4, 'WEBPVP8 ')],
  ['application/pdf', bytes('%PDF-1.7\n', 0xe2, 0)],
  ['audio/ogg', bytes('OggS', 0, 2)],
  ['text/plain', Buffer.from('Grüße\r\n\tund mehr')],
  ['text/plain', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')],
  ['text/plain', Buffer.from('<!doctype html><script>alert(1)</script>')],
  ['text/plain', Buffer.alloc(0)],
  ['application/octet-stream', bytes('PK', 3, 4)],
  ['application/octet-stream', bytes('RIFF', 1, 2, 3, 4, 'WAVE', 0)],
  ['application/octet-stream', bytes(0xff, 0xfe, 'h', 0, 'i', 0)],
  ['application/octet-stream', bytes('a', 0xe9, 'b')],
  ['application/octet-stream', bytes(0x7f, 'ELF')],
])('%s', (type, head) => {
  expect(typeOf(head)).toBe(type)
})

test('a text is one too where its beginning ends within a character', () => {
  for (const letter of ['é', '€', '👋']) {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const text = Buffer.from(before + letter.repeat(headBytes)).subarray(0, headBytes)
      expect(typeOf(text)).toBe('text/plain')
    }
  }
})

test('nothing that can run is shown in the page', () => {
  expect([...inlineTypes].filter(type => /svg|html|xml|pdf|text/.test(type))).toEqual([])
})
