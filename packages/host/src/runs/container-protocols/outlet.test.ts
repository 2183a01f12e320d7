import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createOutletReader } from './outlet.ts'

const openOutlet = () => {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-outlet-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const path = join(home, 'output')
  mkdirSync(path)
  const reader = createOutletReader(path, {
    directory: 'output',
    meaning: body => [{ type: 'step', kind: 'text', text: JSON.stringify(body) }],
  })
  return {
    home,
    path,
    put: (name: string, content: string) => writeFileSync(join(path, name), content),
    left: () => readdirSync(path).sort(),
    hear: (last = false) =>
      [...reader.read(last)].flatMap(({ events }) =>
        events.map(event => (event.type === 'step' ? `${event.kind} ${event.text}` : event.type)),
      ),
  }
}

test('files are heard once, in the order of their numbers, and are gone', () => {
  const outlet = openOutlet()
  outlet.put('10000.json', '{"n":3}')
  outlet.put('9999.json', '{"n":2}')
  outlet.put('12.json', '{"n":1}')
  outlet.put('13.json.tmp', '{"n":')
  expect(outlet.hear()).toEqual(['text {"n":1}', 'text {"n":2}', 'text {"n":3}'])
  expect(outlet.hear()).toEqual([])
  expect(outlet.left()).toEqual(['13.json.tmp'])
})

test('a half-written file is left until it is whole, or until nobody writes any more', () => {
  const outlet = openOutlet()
  outlet.put('1.json', '{"n":')
  expect(outlet.hear()).toEqual([])
  outlet.put('1.json', '{"n":1}')
  expect(outlet.hear()).toEqual(['text {"n":1}'])
  outlet.put('2.json', '{"n":')
  expect(outlet.hear()).toEqual([])
  expect(outlet.hear(true)).toEqual([expect.stringContaining('notice')])
  outlet.put('3.json', '{"n":')
  utimesSync(join(outlet.path, '3.json'), 1, 1)
  expect(outlet.hear()).toEqual([expect.stringContaining('notice')])
  expect(outlet.left()).toEqual([])
})

test('nothing but a file is read, and nothing elsewhere is read or removed', () => {
  const outlet = openOutlet()
  const secret = join(outlet.home, 'secret')
  writeFileSync(secret, '{"secret":1}')
  symlinkSync(secret, join(outlet.path, '1.json'))
  linkSync(secret, join(outlet.path, '2.json'))
  execFileSync('mkfifo', [join(outlet.path, '3.json')])
  symlinkSync('/dev/zero', join(outlet.path, '4.json'))
  mkdirSync(join(outlet.path, '5.json'))
  outlet.put('6.json', 'x'.repeat(2_000_000))
  outlet.put('7.json', Buffer.from([0xff, 0xfe]).toString('latin1'))
  outlet.put('8.json', '['.repeat(100_000))
  outlet.put('9.json', '{"n":9}')
  const heard = outlet.hear(true)
  expect(heard.filter(text => text.startsWith('text'))).toEqual(['text {"n":9}'])
  expect(heard.join()).not.toContain('secret')
  // What cannot be removed is complained of once.
  outlet.hear()
  expect(outlet.hear()).toEqual([])
  expect(outlet.left()).toEqual(['5.json'])
  expect(existsSync(secret)).toBe(true)
})

test('a directory that was replaced by a link is not looked into', () => {
  const outlet = openOutlet()
  const elsewhere = join(outlet.home, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, '1.json'), '{}')
  rmSync(outlet.path, { recursive: true })
  symlinkSync(elsewhere, outlet.path)
  expect(outlet.hear()).toEqual([])
  rmSync(outlet.path)
  expect(outlet.hear()).toEqual([])
  expect(readdirSync(elsewhere)).toEqual(['1.json'])
})

test('a flood is heard in pieces, and all of it', () => {
  const outlet = openOutlet()
  for (let i = 0; i < 4500; i++) outlet.put(`${i}.json`, '{}')
  const pieces: number[] = []
  for (let heard = outlet.hear(); heard.length > 0; heard = outlet.hear()) pieces.push(heard.length)
  expect(Math.max(...pieces)).toBeLessThanOrEqual(2000)
  expect(pieces.reduce((sum, count) => sum + count)).toBe(4500)
})
