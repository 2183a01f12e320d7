import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compose } from './compose.ts'
import { expand } from './expand.ts'
import { rememberClocks } from './zones.ts'

const start = Date.UTC(2026, 6, 2, 7)
const plain = {
  ...{ uid: 'u', title: 'Tea', start, end: start + 3_600_000, isDate: false, stamp: start },
  ...{ description: undefined, location: undefined },
}

const readBack = (text: string) =>
  expand(text, {
    ...{ range: { from: start - 86_400_000, to: start + 86_400_000 }, zone: 'Europe/Berlin' },
    ...{ most: 10, steps: 10, describedClock: rememberClocks() },
  }).instances

test('an event is written in UTC or in days, as every server reads it', () => {
  expect(compose(plain).split('\r\n')).toEqual([
    ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//Hatchway//Calendar//EN', 'BEGIN:VEVENT', 'UID:u'],
    ...['DTSTAMP:20260702T070000Z', 'DTSTART:20260702T070000Z', 'DTEND:20260702T080000Z', 'SUMMARY:Tea'],
    ...['END:VEVENT', 'END:VCALENDAR', ''],
  ])
  const [first, end] = [Date.UTC(2026, 6, 2), Date.UTC(2026, 6, 4)]
  const days = compose({ ...plain, start: first, end, isDate: true })
  expect(days).toContain('DTSTART;VALUE=DATE:20260702\r\nDTEND;VALUE=DATE:20260704\r\n')
})

test('any words come back as they were, in lines that are not too long, and add nothing to the event', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      ',',
      ';',
      ':',
      '\\',
      '\\n',
      '"',
      '\r',
      '\n',
      '\r\n ',
      '\u2028',
      '\u0085',
      '\v',
      '\u001e',
      '\ud800',
      '🫖',
    ),
    fc.constantFrom('BEGIN:VALARM', 'ATTENDEE:mailto:a@b', 'END:VEVENT', 'x'.repeat(100)),
  )
  const words = fc.array(piece, { maxLength: 12 }).map(pieces => `a${pieces.join('')}a`)
  fc.assert(
    fc.property(words, words, words, (title, description, location) => {
      const text = compose({ ...plain, title, description, location })
      const lines = text.split('\r\n')
      expect(text.replaceAll('\r\n', '')).not.toMatch(/[^\P{Cc}\t]|[\u2028\u2029]/u)
      for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75)
      expect(lines.filter(line => !line.startsWith(' '))).toHaveLength(14)
      const kept = (said: string) =>
        said
          .toWellFormed()
          .replaceAll(/\r\n|[\r\u0085\u2028\u2029]/g, '\n')
          .replaceAll(/[^\P{Cc}\n\t]/gu, '')
      expect(readBack(text)).toMatchObject([
        { title: kept(title), description: kept(description), location: kept(location), start },
      ])
    }),
    { numRuns: 500 },
  )
})
