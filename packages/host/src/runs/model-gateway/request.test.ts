import { expect, test } from 'vitest'
import { chosenModel } from '../../config/model.ts'
import type { ProviderName } from '../../config/providers.ts'
import { headersOfAnswer, requestFor } from './request.ts'

const key = 'sk-of-the-host-0123456789'
const pathOf = (method: string, url: string) => {
  const wanted = requestFor(method, url, {}, key)
  return 'status' in wanted ? wanted.status : wanted.path
}

test.each([
  ['POST', '/v1/messages'],
  ['POST', '/v1/messages?beta=true'],
  ['POST', '/v1/messages/count_tokens?beta=true'],
  ['POST', '/v1/responses'],
  ['POST', '/v1/chat/completions'],
  ['POST', '/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse'],
  ['GET', '/v1/models'],
  ['GET', '/v1/models?limit=1000&beta=true'],
  ['GET', '/v1/models/claude-x-4.5@20260101'],
])('%s %s is asked as it is', (method, url) => {
  expect(pathOf(method, url)).toBe(url)
})

test.each([
  ['POST', '/'],
  ['POST', '/v1'],
  ['POST', '/v1/files'],
  ['POST', '/v1/messages/batches'],
  ['POST', '/v1/messages/'],
  ['POST', '//v1/messages'],
  ['POST', '/v1//messages'],
  ['POST', '/v1/./messages'],
  ['POST', '/v1/%6dessages'],
  ['POST', 'http://example.org/v1/messages'],
  ['POST', '/v1/messages#x'],
  ['POST', '/v1/messages?'],
  ['POST', '/v1/messages?beta=true?x'],
  ['POST', '/v1/messages?beta=true&key=x'],
  ['POST', '/v1/messages?beta=a/../b'],
  ['POST', '/v1/messages?beta=a%0d%0ab'],
  ['POST', '/v1/messages HTTP/1.1'],
  ['POST', '/v1/models/gemini-2.5-pro:tune'],
  ['POST', '/v1/responses/resp_1'],
  ['GET', '/v1/models/..'],
  ['GET', '/v1/models/x/y'],
  ['GET', '/v1/models/a%2fb'],
  ['GET', '/v1/models\\x'],
])('%s %s is no path of the API', (method, url) => {
  expect(pathOf(method, url)).toBe(404)
})

test.each(['GET', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', undefined])(
  '%s messages is refused',
  method => {
    const wanted = requestFor(method, '/v1/messages', {}, key)
    expect(wanted).toMatchObject({ status: 405 })
  },
)

test('only headers that the API has a use for are set, and the key in the place of the placeholder', () => {
  const given = {
    host: 'evil.example',
    connection: 'content-length',
    'content-type': 'application/json; charset=utf-8',
    'content-length': '2',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'oauth-2025-04-20,interleaved-thinking-2025-05-14',
    'user-agent': 'claude-cli/1.0.128 (external, sdk-ts)',
    'x-app': 'cli',
    'x-stainless-runtime-version': 'v24.0.0',
    'x-organization-uuid': 'another',
    'anthropic-workspace-id': 'another',
    'x-forwarded-host': 'evil.example',
    cookie: 'a=b',
    authorization: 'Bearer placeholder',
  }
  const kept = {
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'oauth-2025-04-20,interleaved-thinking-2025-05-14',
    'user-agent': 'claude-cli/1.0.128 (external, sdk-ts)',
    'x-app': 'cli',
    'x-stainless-runtime-version': 'v24.0.0',
    'accept-encoding': 'identity',
  }
  // A subscription's token is sent as a bearer's, and only if the agent has done so, too.
  expect(requestFor('POST', '/v1/messages', given, key)).toMatchObject({
    headers: { ...kept, authorization: `Bearer ${key}` },
  })
  const both = requestFor('POST', '/v1/messages', { ...given, 'x-api-key': 'placeholder' }, key)
  expect('headers' in both && both.headers).toEqual({ ...kept, 'x-api-key': key })
})

test.each([
  ['POST', { 'anthropic-version': '2023-06-01, 2024-01-01' }],
  ['POST', { 'anthropic-beta': 'a b' }],
  ['POST', { 'anthropic-beta': 'a,,b' }],
  ['POST', { 'user-agent': 'x\ty' }],
  ['POST', { 'user-agent': 'ü' }],
  ['POST', { 'x-stainless-os': 'x'.repeat(1000) }],
  ['POST', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['POST', { 'content-encoding': 'gzip' }],
  ['POST', { 'transfer-encoding': 'gzip, chunked' }],
  ['POST', { 'transfer-encoding': 'chunked', 'content-length': '5' }],
] as const)('%s with %j is refused', (method, headers) => {
  expect(requestFor(method, '/v1/messages', headers, key)).toMatchObject({ status: 400 })
})

test.each([{ 'transfer-encoding': 'chunked' }, { 'content-length': '5' }])(
  'GET with %j is refused',
  headers => {
    expect(requestFor('GET', '/v1/models', headers, key)).toMatchObject({ status: 400 })
  },
)

test('of an answer only named headers go back, and none with the key in it', () => {
  expect(
    headersOfAnswer(
      {
        'content-type': 'text/event-stream; charset=utf-8',
        'retry-after': '5',
        'x-should-retry': 'false',
        'anthropic-ratelimit-requests-remaining': '7',
        'anthropic-ratelimit-echo': `for ${key}`,
        'request-id': 'one\u0000two',
        'anthropic-organization-id': 'org',
        'set-cookie': ['a=b'],
        'content-length': '5',
        'transfer-encoding': 'chunked',
        connection: 'x',
        server: 'y',
      },
      key,
    ),
  ).toEqual({
    'content-type': 'text/event-stream; charset=utf-8',
    'retry-after': '5',
    'x-should-retry': 'false',
    'anthropic-ratelimit-requests-remaining': '7',
  })
})

const manner = (provider: ProviderName) => chosenModel({ provider, url: 'http://127.0.0.1:1' }, {})

test.each<[ProviderName, string, string, Record<string, string>]>([
  ['anthropic', 'POST', '/v1/messages', { 'x-api-key': key }],
  ['openai', 'POST', '/v1/responses', { authorization: `Bearer ${key}` }],
  ['openai', 'POST', '/v1/chat/completions', { authorization: `Bearer ${key}` }],
  [
    'google',
    'POST',
    '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    { 'x-goog-api-key': key },
  ],
  ['google', 'GET', '/v1beta/models', { 'x-goog-api-key': key }],
  ['openrouter', 'POST', '/v1/chat/completions', { authorization: `Bearer ${key}` }],
  ['ollama', 'POST', '/v1/messages', { authorization: `Bearer ${key}` }],
])('%s is asked by its own APIs, with the key where it wants it: %s %s', (provider, method, url, shown) => {
  // Whatever header the agent’s placeholder is in.
  for (const given of [{ 'x-api-key': 'placeholder' }, { authorization: 'Bearer placeholder' }]) {
    const wanted = requestFor(method, url, given, key, manner(provider))
    if ('status' in wanted) throw new Error(wanted.message)
    const { authorization, 'x-api-key': plain, 'x-goog-api-key': google } = wanted.headers
    const found = { authorization, 'x-api-key': plain, 'x-goog-api-key': google }
    expect(found).toEqual({
      ...{ authorization: undefined, 'x-api-key': undefined, 'x-goog-api-key': undefined },
      ...shown,
    })
  }
})

test.each<[ProviderName, string]>([
  ['anthropic', '/v1/responses'],
  ['anthropic', '/v1beta/models/gemini-2.5-pro:generateContent'],
  ['openai', '/v1/messages'],
  ['google', '/v1/chat/completions'],
  ['google', '/v1beta/models/gemini-2.5-pro:tune'],
  ['google', '/v1beta/models/a/b:generateContent'],
  ['ollama', '/v1beta/models/x:generateContent'],
])('%s is not asked for %s', (provider, url) => {
  expect(requestFor('POST', url, {}, key, manner(provider))).toMatchObject({ status: 404 })
})

test('a subscription’s token is shown as one, and without a key nothing is', () => {
  const token = `sk-ant-oat01-${key}`
  const wanted = requestFor('POST', '/v1/messages', { 'anthropic-beta': 'a' }, token, manner('anthropic'))
  expect(wanted).toMatchObject({
    headers: { authorization: `Bearer ${token}`, 'anthropic-beta': 'a,oauth-2025-04-20' },
  })
  expect(wanted).not.toHaveProperty('headers.x-api-key')
  const bare = requestFor('POST', '/v1/chat/completions', { authorization: 'x' }, '', manner('ollama'))
  expect(bare).not.toHaveProperty('headers.authorization')
})
