import { expect, test } from 'vitest'
import { mayHoldSecrets } from './prefilter.ts'

test.each([
  'Hello, how are you? The meeting is at 10:30 on 2026-03-04.',
  'Donaudampfschifffahrtsgesellschaft is a long word, as is internationalization.',
  '明天下午三点开会，请带上资料。',
  { a: ['short', { b: 7 }], c: null },
])('nothing to see in %o', payload => {
  expect(mayHoldSecrets(payload)).toBe(false)
})

test.each([
  ['a token', { text: 'use ghp_0123456789abcdefghijABCDEFGHIJ012345 for it' }],
  ['a key', { deep: [{ text: '-----BEGIN RSA PRIVATE KEY-----' }] }],
  ['a password in an address', 'https://ana:hunter2@example.org/'],
  ['something that is called a secret', 'password: hunter'],
  ['a key that is the name of a field', { AKIAIOSFODNN7EXAMPLE: 1 }],
  ['a field that is called a secret', { password: 'correct horse' }],
  ['a token without digits', { text: 'hf_abcdefghijklmnopqrstuvwxyzabcdefgh' }],
  ['a named one in words', 'my_password = hunter2'],
  ['a token in pieces', ['ghp_01234567', '89abcdefghij', 'ABCDEFGHIJ012345']],
  ['too much to tell', 'word '.repeat(20_000)],
  ['too many to tell', Array.from({ length: 2000 }, () => 'x')],
])('%s is looked at properly', (_, payload) => {
  expect(mayHoldSecrets(payload)).toBe(true)
})

test('is quick with whatever it is given', () => {
  for (const piece of ['a', 'a1', '/', ':@', 'aaaa1 '])
    expect(typeof mayHoldSecrets(piece.repeat(30_000 / piece.length))).toBe('boolean')
})
