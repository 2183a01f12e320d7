import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Part, writeDocs } from './docs.ts'

const order = ['latency', 'drain', 'methods']
const line = (what: string, hatchway: string) => ({
  what,
  hatchway,
  against: 'a peer',
  ratio: '2×',
  target: '≤ 3×',
  met: true,
})
const part = (name: string, hatchway: string, more: Partial<Part> = {}): Part => ({
  name,
  doubts: [],
  result: { lines: [line(`${name} of it`, hatchway)], figures: {}, missing: [] },
  ...more,
})
const methods = (cell: string): Part => ({
  name: 'methods',
  doubts: [],
  result: {
    lines: [],
    figures: {},
    missing: [],
    sheets: [{ title: 'Methods', heads: ['method'], rows: [[cell]], notes: ['a note'] }],
    pictures: [{ name: 'grown', title: 'Grown', svg: '<svg/>', notes: [] }],
  },
})

const place = () => {
  const directory = mkdtempSync(join(tmpdir(), 'docs-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return join(directory, 'benchmark.md')
}

test('a run of some rows replaces those and keeps the others', () => {
  const file = place()
  writeDocs(file, '2 cores', [part('latency', '100 µs'), part('drain', '9 files/s'), methods('first')], order)
  writeDocs(file, '2 cores', [part('latency', '90 µs', { doubts: ['quick'] }), methods('second')], order)
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain('100 µs')
  expect(text).toMatch(/\| latency \(quick\) \| latency of it \| 90 µs/)
  expect(text).toMatch(/\| drain\s+\| drain of it\s+\| 9 files\/s/)
  expect(text).not.toContain('first')
  expect(text).toContain('second')
  expect(readFileSync(join(file, '..', 'pictures', 'grown.svg'), 'utf8')).toBe('<svg/>')
})

test('figures of two machines never stand in one table', () => {
  const file = place()
  writeDocs(file, '2 cores', [part('latency', '100 µs')], order)
  expect(writeDocs(file, '64 cores', [part('drain', '9 files/s')], order)).toContain('another machine')
  expect(readFileSync(file, 'utf8')).not.toContain('9 files/s')
  const whole = [part('latency', '50 µs'), part('drain', '99 files/s'), methods('all')]
  expect(writeDocs(file, '64 cores', whole, order)).toBeUndefined()
  expect(readFileSync(file, 'utf8')).toContain('Measured with 64 cores.')
})

test('a row that broke leaves what it showed before', () => {
  const file = place()
  writeDocs(file, '2 cores', [part('latency', '100 µs')], order)
  const broken = { lines: [], figures: {}, missing: [], broken: 'lost 3 files' }
  writeDocs(file, '2 cores', [part('latency', '', { result: broken })], order)
  expect(readFileSync(file, 'utf8')).toContain('100 µs')
})
