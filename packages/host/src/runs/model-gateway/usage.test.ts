import { expect, test } from 'vitest'
import { readUsage } from './usage.ts'

const stream = (...events: unknown[]) => events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')

const read = (type: string, body: string) => {
  const reader = readUsage(type)
  // Cut anywhere.
  for (let at = 0; at < body.length; at += 11) reader.push(Buffer.from(body.slice(at, at + 11)))
  return reader.result()
}

test.each([
  [
    'Responses',
    stream(
      { type: 'response.created', response: { model: 'gpt-x', usage: null } },
      { type: 'response.output_text.delta', delta: 'hello' },
      {
        type: 'response.completed',
        response: {
          model: 'gpt-x',
          usage: { input_tokens: 30, input_tokens_details: { cached_tokens: 20 }, output_tokens: 5 },
        },
      },
    ),
    { model: 'gpt-x', inputTokens: 30, outputTokens: 5, cachedTokens: 20 },
  ],
  [
    'Chat Completions',
    `${stream(
      { model: 'qwen3', choices: [{ delta: { content: 'hello' } }], usage: null },
      {
        model: 'qwen3',
        choices: [],
        usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
      },
    )}data: [DONE]\n\n`,
    { model: 'qwen3', inputTokens: 9, outputTokens: 2, cachedTokens: 4 },
  ],
  [
    'generateContent',
    stream(
      {
        candidates: [{ content: { parts: [{ text: 'hel' }] } }],
        usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 1 },
        modelVersion: 'gemini-x',
      },
      {
        candidates: [{ content: { parts: [{ text: 'lo' }] } }],
        usageMetadata: {
          promptTokenCount: 8,
          candidatesTokenCount: 3,
          thoughtsTokenCount: 4,
          cachedContentTokenCount: 2,
        },
        modelVersion: 'gemini-x',
      },
    ),
    { model: 'gemini-x', inputTokens: 8, outputTokens: 7, cachedTokens: 2 },
  ],
])('the usage of a stream of %s is counted', (_, body, usage) => {
  expect(read('text/event-stream', body)).toEqual(usage)
})

test('a stream that was broken off is counted by what was seen of it', () => {
  const body = stream({ model: 'qwen3', choices: [{ delta: { content: 'x'.repeat(4000) } }] })
  expect(read('text/event-stream', body)).toMatchObject({
    inputTokens: 0,
    outputTokens: expect.closeTo(1000, -2),
  })
})

test('a stream of Google’s that is a list is counted, too', () => {
  const part = (candidatesTokenCount: number) => ({
    usageMetadata: { promptTokenCount: 8, candidatesTokenCount },
    modelVersion: 'gemini-x',
  })
  expect(read('application/json; charset=UTF-8', JSON.stringify([part(1), part(3)]))).toMatchObject({
    model: 'gemini-x',
    inputTokens: 8,
    outputTokens: 3,
  })
})

test.each([
  [
    { model: 'gpt-x' },
    {
      usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
    },
    { model: 'gpt-x', inputTokens: 9, outputTokens: 2, cachedTokens: 4 },
  ],
  [
    {},
    { usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 3 }, modelVersion: 'gemini-x' },
    { model: 'gemini-x', inputTokens: 8, outputTokens: 3 },
  ],
  [{}, {}, { inputTokens: 0, outputTokens: expect.toSatisfy(count => count > 2_000_000) }],
])(
  'an answer that is too long to be kept costs what it says at its end, or what its length says',
  (begin, end, usage) => {
    const reader = readUsage('application/json')
    // What an agent has the model say is no usage.
    const text = `${JSON.stringify({ usage: { prompt_tokens: 0, completion_tokens: 1 } })} `.repeat(150_000)
    const body = JSON.stringify({ ...begin, choices: [text], ...end })
    for (let at = 0; at < body.length; at += 65_536) reader.push(Buffer.from(body.slice(at, at + 65_536)))
    expect(body.length).toBeGreaterThan(8_388_608)
    expect(reader.result()).toMatchObject(usage)
  },
)
