import { describe, expect, test } from 'vitest'
import { createOutput } from './output.ts'

/** What is kept of a text that comes in pieces of a size. */
const kept = (bytes: Buffer, limit: number, piece: number) => {
  const output = createOutput(limit)
  for (let at = 0; at < bytes.length; at += piece) output.add(bytes.subarray(at, at + piece))
  return output.read()
}

const pieces = [1, 2, 3, 7, 8, 64, 1000]

describe.each(pieces)('in pieces of %i bytes', piece => {
  test('what fits is kept whole', () => {
    for (const length of [0, 1, 7, 8, 9, 15, 16]) {
      const text = 'abcdefghijklmnop'.slice(0, length)
      expect(kept(Buffer.from(text), 16, piece)).toEqual({ text, dropped: 0 })
    }
  })

  test('of what does not, its beginning and its end', () => {
    const text = Array.from({ length: 500 }, (_, at) => String.fromCharCode(97 + (at % 26))).join('')
    for (const length of [17, 18, 24, 25, 40, 499, 500]) {
      const whole = text.slice(0, length)
      expect(kept(Buffer.from(whole), 16, piece)).toEqual({
        text: `${whole.slice(0, 8)}\n[${length - 16} bytes are left out here]\n${whole.slice(-8)}`,
        dropped: length - 16,
      })
    }
  })

  test('no letter is cut in the middle, and every byte is counted', () => {
    for (const letter of ['é', '€', '😀']) {
      const whole = Buffer.from(letter.repeat(200))
      for (const limit of [16, 17, 18, 19, 20, 21]) {
        const { text, dropped } = kept(whole, limit, piece)
        expect(text).not.toContain('\ufffd')
        const [first = '', last = ''] = text.split(/\n\[\d+ bytes are left out here\]\n/)
        expect(Buffer.byteLength(first) + Buffer.byteLength(last) + dropped).toBe(whole.length)
      }
    }
  })
})

test('what is no text is marked as such', () => {
  expect(kept(Buffer.from([0x61, 0xff, 0, 0xc3, 0x62, 0xe2, 0x82]), 100, 1).text).toBe(
    'a\ufffd\ufffd\ufffdb\ufffd',
  )
  const noise = Buffer.from(Array.from({ length: 100 }, (_, at) => 0x80 + (at % 64)))
  expect(kept(noise, 16, 5).text).toMatch(/^\ufffd+\n\[\d+ bytes are left out here\]\n\ufffd+$/)
})
