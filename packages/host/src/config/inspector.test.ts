import { expect, test } from 'vitest'
import { inspectorSchema } from './inspector.ts'

test('by default there are rules only', () => {
  expect(inspectorSchema.parse({})).toEqual({
    url: 'https://api.anthropic.com',
    keyVariable: 'ANTHROPIC_API_KEY',
    timeoutMs: 15_000,
    cacheMinutes: 10,
  })
})

test.each([
  ['a password in the address', { url: 'https://a:b@example.com' }],
  ['another protocol', { url: 'file:///etc/passwd' }],
  ['a key in the place of its variable', { keyVariable: 'sk-ant-1' }],
  ['a key', { key: 'abc' }],
  ['no patience', { timeoutMs: 0 }],
  ['a name with a line break', { model: 'a\nb' }],
  ['half a minute', { cacheMinutes: 0.5 }],
])('%s is refused', (_, settings) => expect(inspectorSchema.safeParse(settings).success).toBe(false))
