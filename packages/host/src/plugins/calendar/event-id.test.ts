import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isOfServer } from './dav-fetch.ts'
import { eventIdOf, objectName, objectUrl, readEventId } from './event-id.ts'

const calendar = 'https://cloud.example.org/dav/anna/work/'

test('an id comes back as what it was', () => {
  const id = { calendar: 'home/0123', object: 'a%40b.ics', version: 'ffff', key: '2026-07-01T10:00:00.000Z' }
  expect(readEventId(eventIdOf(id))).toEqual(id)
  expect(readEventId(eventIdOf({ ...id, key: undefined }))).toEqual({ ...id, key: undefined })
})

test('what is no id is none, however it looks', () => {
  const sealed = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const texts = [
    ...['', 'x', 'not base64!', '../../etc/passwd', 'http://169.254.169.254/', 'a'.repeat(5000)],
    sealed({ object: 'a.ics' }),
    sealed([2, 'c', 'o', 'v', null]),
    sealed([1, 'c', '', 'v', null]),
    sealed([1, 'c', 'o', 'v', 'tomorrow']),
    sealed([1, 'c', 'o', 'v', '2026-99-99']),
    sealed([1, 'c', 'o', 'v', null, 'more']),
    sealed([1, 'c', { toString: 1 }, 'v', null]),
  ]
  for (const text of texts) expect(readEventId(text), text).toBeUndefined()
})

test('an object is right inside its calendar, or nowhere', () => {
  expect(objectUrl(calendar, 'a%40b.ics')).toBe(`${calendar}a%40b.ics`)
  const elsewhere = [
    ...['', '.', '..', '../work2/a.ics', '/dav/bert/home/a.ics', '//evil.example/a.ics', 'a/b.ics'],
    ...[
      'http://evil.example/a.ics',
      'https:a.ics/b',
      'a.ics?x=1',
      'a.ics#x',
      'a\\..\\b.ics',
      ' a.ics',
      'a.ics\n',
    ],
    ...[
      '%2e%2e',
      '.%2E',
      '%2e',
      '..%2fprivate%2fa.ics',
      '%2Fetc',
      'a%5cb',
      '%252e%252e%252fb',
      'a%00.ics',
      'a%0d%0ab',
    ],
    ...['%', '%zz', '%ff', 'ä.ics', '...'],
  ]
  for (const object of elsewhere) expect(objectUrl(calendar, object), object).toBeUndefined()
})

test('no name leads out of the calendar', () => {
  const piece = fc.constantFrom(
    ...'a./\\%25eEfF:@?# \n'.split(''),
    '..',
    '%2e',
    '%2f',
    '%5c',
    '//',
    'http:',
    'ä',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
      const url = objectUrl(calendar, pieces.join(''))
      if (url === undefined) return
      expect(url.startsWith(calendar)).toBe(true)
      const inside = decodeURIComponent(decodeURIComponent(url.slice(calendar.length)))
      expect(inside).not.toMatch(/[/\\]|^\.*$/)
    }),
    { numRuns: 2000 },
  )
})

test('a server’s own word for an object is taken only if it is inside', () => {
  expect(objectName(calendar, '/dav/anna/work/a.ics')).toBe('a.ics')
  expect(objectName(calendar, `${calendar}a.ics`)).toBe('a.ics')
  expect(objectName(calendar, '/dav/anna/private/a.ics')).toBeUndefined()
  expect(objectName(calendar, 'https://evil.example/dav/anna/work/a.ics')).toBeUndefined()
  expect(objectName(calendar, '/dav/anna/work/')).toBeUndefined()
})

test('the password goes to the account’s server, and to its siblings with names', () => {
  const to = (url: string, home: string) => isOfServer(new URL(url), new URL(home))
  expect(to('https://p34-caldav.icloud.com/1/', 'https://caldav.icloud.com/')).toBe(true)
  expect(to('https://dav.example.org/x', 'https://dav.example.org/')).toBe(true)
  expect(to('https://dav.example.org/x', 'http://dav.example.org/')).toBe(true)
  expect(to('http://dav.example.org/x', 'https://dav.example.org/')).toBe(false)
  expect(to('https://dav.example.org:8443/x', 'https://dav.example.org/')).toBe(false)
  expect(to('https://evil.org/x', 'https://example.org/')).toBe(false)
  expect(to('https://evil-icloud.com/x', 'https://caldav.icloud.com/')).toBe(false)
  expect(to('http://10.0.0.6/x', 'http://10.0.0.5/')).toBe(false)
  expect(to('http://127.0.0.1/x', 'http://localhost/')).toBe(false)
  expect(to('https://a:b@dav.example.org/x', 'https://dav.example.org/')).toBe(false)
})
