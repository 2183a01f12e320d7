import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutLines, requestOf } from './lines.ts'

function cutAll(chunks: readonly Buffer[], limitBytes: number) {
  const lines: string[] = []
  const tooLong: { head: string; tail: string }[] = []
  let isEndless = false
  const push = cutLines(limitBytes, {
    line: line => lines.push(line.toString('utf8')),
    tooLong: ends => tooLong.push(ends),
    endless: () => {
      isEndless = true
    },
  })
  for (const chunk of chunks) push(chunk)
  return { lines, tooLong, isEndless }
}

describe('lines', () => {
  test('are the same however they are cut into pieces', () => {
    const text = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'ü', '😀', '\r', '"', '\0'), maxLength: 40 }),
    )
    fc.assert(
      fc.property(text, fc.array(fc.nat(60)), (lines, cuts) => {
        const whole = Buffer.from(lines.map(line => `${line}\n`).join(''))
        const places = [0, ...cuts.map(cut => Math.min(cut, whole.length)), whole.length].sort(
          (a, b) => a - b,
        )
        const chunks = places.slice(1).map((end, at) => whole.subarray(places[at], end))
        expect(cutAll(chunks, 1000).lines).toEqual(lines)
      }),
    )
  })

  test('one that is too long goes by, and the next one is read', () => {
    const long = `${'a'.repeat(600)}${'b'.repeat(600)}`
    const chunks = [...Buffer.from(`before\n${long}\nafter\n`)].map(byte => Buffer.from([byte]))
    const { lines, tooLong, isEndless } = cutAll(chunks, 1000)
    expect(lines).toEqual(['before', 'after'])
    expect(tooLong).toEqual([{ head: 'a'.repeat(512), tail: 'b'.repeat(512) }])
    expect(isEndless).toBe(false)
  })

  test('of exactly the limit is read, of one byte more is not', () => {
    const { lines, tooLong } = cutAll([Buffer.from(`${'a'.repeat(1000)}\n${'b'.repeat(1001)}\n`)], 1000)
    expect(lines).toEqual(['a'.repeat(1000)])
    expect(tooLong).toHaveLength(1)
  })

  test('one that does not end is given up', () => {
    const chunks = Array.from({ length: 20 }, () => Buffer.alloc(1000, 'a'))
    expect(cutAll(chunks, 1000).isEndless).toBe(true)
  })
})

describe('what a message answers', () => {
  test.each([
    ['{"jsonrpc":"2.0","id":12,"result":{"con', 'tent":[]}}', 12],
    ['{ "id" : 3 , "jsonrpc" : "2.0", "result', '":{}}', 3],
    ['{"result":{"content":[', '{"id":99}]},"jsonrpc":"2.0","id":4}', 4],
    ['{"result":{"content":[', ']},"id":5,"jsonrpc":"2.0"}\r', 5],
    ['{"result":{"id":7,', '"id":8}}', undefined],
    ['{"jsonrpc":"2.0","method":"x","params":{', '"text":"\\"id\\":9}"}}', undefined],
    ['{"jsonrpc":"2.0","id":"text","result":', '{}}', undefined],
    ['', '', undefined],
  ])('%s … %s', (head, tail, id) => {
    expect(requestOf({ head, tail })).toBe(id)
  })
})
