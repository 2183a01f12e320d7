import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outcome, ReplyAddress } from '@hatchway/protocol'
import { pino } from 'pino'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { createLayout, layoutOf } from '../base/layout.ts'
import { createReplies } from './replies.ts'

const patient = { timeout: 20_000 }

const address: ReplyAddress = { directory: 'responses', id: 'r1', shape: 'receipt' }
const outcome: Outcome = { ok: true, result: { done: true } }

afterEach(() => vi.useRealTimers())

/** A data directory with the group `a`, and a place outside of it that nobody may touch. */
function open() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-replies-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const layout = layoutOf(join(folder, 'data'))
  createLayout(layout)
  mkdirSync(join(layout.ipc, 'a'))
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  const log: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => void log.push(line) })
  const replies = createReplies({ layout, owners: () => undefined, log: logger })
  onTestFinished(() => replies.stop())
  const responses = join(layout.ipc, 'a', 'responses')
  return { layout, elsewhere, log, replies, responses, answer: join(responses, 'r1.json') }
}
const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
const receipt = { version: 1, id: 'r1', ok: true, result: { done: true } }

test('an answer is there, whole, before anybody is told so', () => {
  const { layout, replies, responses, answer } = open()
  mkdirSync(responses)
  const placed = vi.fn(() => expect(read(answer)).toEqual(receipt))
  replies.send('a', address, outcome, placed)
  expect(placed).toHaveBeenCalledOnce()
  expect(lstatSync(answer).mode & 0o777).toBe(0o600)
  expect(readdirSync(layout.staging)).toEqual([])
})

test('a directory that is missing is made', () => {
  const { replies, responses, answer } = open()
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).toHaveBeenCalledOnce()
  expect(read(answer)).toEqual(receipt)
  expect(lstatSync(responses).mode & 0o777).toBe(0o700)
})

test('a link in the directory’s place is not followed; the answer waits until it is a directory again', async () => {
  const { elsewhere, log, replies, responses, answer } = open()
  symlinkSync(elsewhere, responses)
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  await vi.waitFor(() => expect(log).toHaveLength(1), patient)
  expect(log[0]).toContain('an answer cannot be placed yet')
  expect(placed).not.toHaveBeenCalled()

  rmSync(responses)
  mkdirSync(responses)
  await vi.waitFor(() => expect(placed).toHaveBeenCalled(), patient)
  expect(read(answer)).toEqual(receipt)
  expect(readdirSync(elsewhere)).toEqual([])
})

test('a link to a directory that does not exist is not followed either', async () => {
  const { elsewhere, replies, responses } = open()
  symlinkSync(join(elsewhere, 'new'), responses)
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).not.toHaveBeenCalled()
  rmSync(responses)
  await vi.waitFor(() => expect(placed).toHaveBeenCalledOnce(), patient)
  expect(readdirSync(elsewhere)).toEqual([])
})

test('a link planted where the answer goes is replaced, and what it points to is left alone', () => {
  const { elsewhere, replies, responses, answer } = open()
  const target = join(elsewhere, 'passwd')
  writeFileSync(target, 'precious')
  mkdirSync(responses)
  symlinkSync(target, answer)
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).toHaveBeenCalledOnce()
  expect(lstatSync(answer).isFile()).toBe(true)
  expect(read(answer)).toEqual(receipt)
  expect(readFileSync(target, 'utf8')).toBe('precious')
})

test('a directory with something in it where the answer goes holds up that answer, and no other', async () => {
  const { layout, replies, responses, answer } = open()
  mkdirSync(join(answer, 'in the way'), { recursive: true })
  const placed = vi.fn()
  const other = vi.fn()
  replies.send('a', address, outcome, placed)
  replies.send('a', { ...address, id: 'r2' }, outcome, other)
  expect(other).toHaveBeenCalledOnce()
  expect(placed).not.toHaveBeenCalled()
  expect(readdirSync(layout.staging)).toEqual([])
  renameSync(answer, join(responses, 'away'))
  await vi.waitFor(() => expect(placed).toHaveBeenCalledOnce(), patient)
  expect(read(answer)).toEqual(receipt)
})

test('an empty directory where the answer goes is replaced', () => {
  const { replies, answer } = open()
  mkdirSync(answer, { recursive: true })
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).toHaveBeenCalledOnce()
  expect(read(answer)).toEqual(receipt)
})

test('the group’s own directory is never made here, where it would get the wrong owner', async () => {
  const { layout, replies, answer } = open()
  rmSync(join(layout.ipc, 'a'), { recursive: true })
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).not.toHaveBeenCalled()
  expect(readdirSync(layout.ipc)).toEqual(['errors'])
  mkdirSync(join(layout.ipc, 'a'))
  await vi.waitFor(() => expect(placed).toHaveBeenCalledOnce(), patient)
  expect(read(answer)).toEqual(receipt)
})

test('after a day of trying an answer is given up, and the operator is told', () => {
  vi.useFakeTimers()
  const { elsewhere, log, replies, responses } = open()
  symlinkSync(elsewhere, responses)
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  vi.advanceTimersByTime(86_000_000)
  expect(placed).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1_000_000)
  expect(placed).toHaveBeenCalledOnce()
  expect(log.some(line => line.includes('given up'))).toBe(true)
  expect(readdirSync(elsewhere)).toEqual([])
})

test('nothing is tried any more after the end', () => {
  vi.useFakeTimers()
  const { elsewhere, replies, responses, answer } = open()
  symlinkSync(elsewhere, responses)
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  replies.stop()
  rmSync(responses)
  mkdirSync(responses)
  vi.advanceTimersByTime(600_000)
  expect(placed).not.toHaveBeenCalled()
  expect(lstatSync(answer, { throwIfNoEntry: false })).toBeUndefined()
})

test('many answers that nobody has taken are removed bit by bit, and those placed meanwhile stay', async () => {
  const { replies, responses } = open()
  const send = (id: string) => replies.send('a', { ...address, id }, outcome, () => {})
  for (let n = 0; n < 1000; n++) send(`r${n}`)
  replies.clear('a')
  const left = readdirSync(responses).length
  expect(left).toBeGreaterThan(500)
  expect(left).toBeLessThan(1000)
  // Asked again by a container that has come since, and something new.
  for (const id of ['r0', 'r999', 'new']) send(id)
  await vi.waitFor(() => expect(readdirSync(responses)).toHaveLength(3), patient)
  expect(readdirSync(responses).sort()).toEqual(['new.json', 'r0.json', 'r999.json'])
})

test('whatever is left to remove is removed at the end', () => {
  const { replies, responses } = open()
  for (let n = 0; n < 300; n++) replies.send('a', { ...address, id: `r${n}` }, outcome, () => {})
  replies.clear('a')
  replies.stop()
  expect(readdirSync(responses)).toEqual([])
})

test('those that wait are limited in bytes: they are kept in memory', () => {
  const { replies, elsewhere, responses, log } = open()
  symlinkSync(elsewhere, responses)
  const large: Outcome = { ok: true, result: { text: 'x'.repeat(1_000_000) } }
  const placed = vi.fn()
  for (let i = 0; i < 40; i++) replies.send('a', { ...address, id: `r${i}` }, large, placed)
  // Sixteen of them wait; the journal has the others.
  expect(placed).toHaveBeenCalledTimes(24)
  expect(log.filter(line => line.includes('given up'))).toHaveLength(1)
})

test('one that waits is not placed any more once nobody can want it', async () => {
  const { replies, responses, answer } = open()
  mkdirSync(join(answer, 'in the way'), { recursive: true })
  const placed = vi.fn()
  replies.send('a', address, outcome, placed)
  expect(placed).not.toHaveBeenCalled()
  // Its container is gone, or its group is wiped.
  replies.clear('a')
  expect(placed).toHaveBeenCalledOnce()
  rmSync(responses, { recursive: true })
  mkdirSync(responses)
  await new Promise(resolve => setTimeout(resolve, 300))
  expect(readdirSync(responses)).toEqual([])
})
