import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Message, textPart, userMessage, withAllResults } from './messages.ts'
import { compacted, tokensIn, tokensOfAll, transcriptOf, withoutOldest } from './window.ts'

const called = (id: string, length: number): Message[] => [
  { role: 'assistant', text: '', calls: [{ id, name: 'read_file', input: '{}' }] },
  {
    role: 'tool',
    results: [{ id, name: 'read_file', parts: [textPart('x'.repeat(length))], isError: false }],
  },
]
const conversation = fc
  .array(
    fc.oneof(
      fc.nat(3000).map(length => [userMessage('u'.repeat(length))]),
      fc.nat(3000).map((length): Message[] => [{ role: 'assistant', text: 'a'.repeat(length), calls: [] }]),
      fc.tuple(fc.uuid(), fc.nat(20_000)).map(([id, length]) => called(id, length)),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map(parts => parts.flat())

const isWhole = (messages: readonly Message[]) => {
  expect(withAllResults(messages, 'missing')).toEqual(messages)
}

test('whatever is said, it fits afterwards, and no call loses its result', async () => {
  await fc.assert(
    fc.asyncProperty(conversation, fc.boolean(), async (messages, fails) => {
      const notices: string[] = []
      const fitting = await compacted(messages, {
        room: 2000,
        notice: text => notices.push(text),
        summarise: async () => {
          if (fails) throw new Error('no answer')
          return 'In short.'
        },
      })
      isWhole(fitting)
      // What the assistant itself said is not cut; everything else is.
      const own = tokensOfAll(fitting.filter(({ role }) => role === 'assistant'))
      expect(tokensOfAll(fitting)).toBeLessThanOrEqual(Math.max(2000, own + 1200))
    }),
  )
})

test('what was asked last is kept even if no summary can be had in the middle of a long turn', async () => {
  const messages = [
    userMessage('find the code'),
    ...Array.from({ length: 9 }, (_, i) => called(`c${i}`, 4000)).flat(),
  ]
  const fitting = await compacted(messages, {
    room: 3000,
    notice: () => {},
    summarise: () => Promise.reject(new Error('no answer')),
  })
  isWhole(fitting)
  expect(JSON.stringify(fitting)).toContain('find the code')
  expect(tokensOfAll(fitting)).toBeLessThanOrEqual(3000)
})

test('the oldest message goes together with the results of its calls', () => {
  const messages = [...called('a', 10), userMessage('b')]
  expect(withoutOldest(messages)).toEqual([userMessage('b')])
  expect(withoutOldest([userMessage('b')])).toEqual([])
})

test('a transcript for a summary is bounded and has both ends', () => {
  const messages = Array.from({ length: 500 }, (_, i) => userMessage(`message ${i} ${'long '.repeat(100)}`))
  const text = transcriptOf(messages, 1000)
  expect(tokensIn(text)).toBeLessThanOrEqual(1000)
  expect(text).toMatch(/message 0 .*message 499 /s)
})
