import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkSender, parseResults } from './checks.ts'

const from = 'ann@example.org'
const by = (...values: readonly string[]) =>
  checkSender(
    from,
    values.map(value => ({ key: 'authentication-results', value })),
    'mx.agents.org',
  )

describe('A sender counts', () => {
  test.each([
    'mx.agents.org; dmarc=pass header.from=example.org',
    'mx.agents.org 1; dmarc=pass (p=REJECT sp=NONE dis=NONE) header.from=Example.ORG',
    'MX.agents.org; dkim=pass header.d=example.org header.s=k1; spf=softfail smtp.mailfrom=list.net',
    'mx.agents.org; dkim=fail header.d=example.org; dkim=pass header.i=@example.org',
    'mx.agents.org; spf=pass smtp.mailfrom=ann@example.org; dmarc=none header.from=example.org',
    'mx.agents.org;\r\n\tspf=pass (sender IP is 192.0.2.1; (nested) \\) done) smtp.mailfrom="odd; one"@example.org',
    'mx.agents.org; auth=pass (plain) smtp.auth=ann@example.org',
    '"mx.agents.org"; spf/1=pass reason="all; good" smtp.mailfrom=example.org',
  ])('by %s', value => {
    expect(by(value)).toEqual({ ok: true })
  })
})

describe('A sender does not count', () => {
  test.each([
    // nobody has checked, or somebody else has
    'mx.agents.org; none',
    'mx.agents.org',
    '',
    '=',
    'mx.evil.org; dmarc=pass header.from=example.org',
    'mx.agents.org.evil.org; dmarc=pass header.from=example.org',
    // an address that goes on behind what looks like a domain
    'mx.agents.org; spf=pass smtp.mailfrom=example.org=x@evil.org; dmarc=none header.from=example.org',
    'mx.agents.org; dkim=pass header.i=example.org=x@evil.org',
    // another domain, or none
    'mx.agents.org; dmarc=pass header.from=evil.org',
    'mx.agents.org; dmarc=pass header.from=sub.example.org',
    'mx.agents.org; dkim=pass header.d=evil.org header.i=@example.org',
    'mx.agents.org; spf=pass smtp.mailfrom=example.org.evil.org',
    'mx.agents.org; spf=pass smtp.mailfrom=notexample.org',
    'mx.agents.org; spf=pass smtp.helo=example.org',
    'mx.agents.org; dmarc=pass',
    // no pass
    'mx.agents.org; dmarc=fail header.from=example.org; spf=pass smtp.mailfrom=example.org',
    'mx.agents.org; dmarc=bestguesspass header.from=example.org',
    'mx.agents.org; spf=neutral smtp.mailfrom=example.org',
    // somebody else who has signed in
    'mx.agents.org; auth=pass smtp.auth=bob@example.org smtp.mailfrom=ann@example.org',
    'mx.agents.org; auth=pass smtp.mailfrom=ann@example.org',
    // what the sender wrote, quoted by the server
    'mx.agents.org; spf=pass (of x; dmarc=pass header.from=example.org) smtp.mailfrom=evil.org',
    'mx.agents.org; spf=pass smtp.mailfrom="; dmarc=pass header.from=example.org ;"@evil.org',
    'mx.agents.org; dmarc=fail header.from=evil.org; dmarc=pass header.from=example.org',
    'mx.agents.org; spf=pass smtp.mailfrom=evil.org smtp.mailfrom=example.org',
    // broken
    'mx.agents.org; spf=pass (unclosed smtp.mailfrom=example.org',
    'mx.agents.org; spf=pass smtp.mailfrom="example.org',
    'mx.agents.org; dmarc pass header.from=example.org',
  ])('by %j', value => {
    expect(by(value)).toMatchObject({ ok: false, reason: expect.stringMatching(/\w/) })
  })

  test('by a header further down, whoever it says it is by', () => {
    const good = 'mx.agents.org; dmarc=pass header.from=example.org'
    expect(by('mx.agents.org; dmarc=fail header.from=example.org', good).ok).toBe(false)
    expect(by('mx.other.org; dmarc=pass header.from=example.org', good).ok).toBe(false)
    expect(by(good, 'mx.agents.org; dmarc=fail header.from=example.org').ok).toBe(true)
    expect(checkSender(from, [], 'mx.agents.org')).toMatchObject({
      reason: expect.stringContaining('no Authentication-Results header'),
    })
  })

  test('whatever the header says that our server did not mean', () => {
    const odd = fc.string({ unit: fc.constantFrom(...'ab;=()"\\ \t.@', 'pass', 'dmarc', 'example.org') })
    fc.assert(
      fc.property(odd, text => {
        // In a comment or in quotes there is nothing but text, as long as it does not end them.
        const inner = text.replaceAll(/["()\\]/g, '')
        expect(by(`mx.agents.org; spf=pass (${inner}) smtp.mailfrom=evil.org`).ok).toBe(false)
        expect(by(`mx.agents.org; spf=pass smtp.mailfrom="${inner}"@evil.org`).ok).toBe(false)
        expect(() => parseResults(text)).not.toThrow()
      }),
    )
  })

  test('after a time that grows with the length of the header, and not faster', () => {
    for (const text of ['('.repeat(200_000), '"'.repeat(200_001), 'a='.repeat(100_000), '\\'.repeat(200_000)])
      expect(by(`mx.agents.org; spf=pass ${text}`).ok).toBe(false)
  })
})
