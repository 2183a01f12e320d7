import { expect, test } from 'vitest'
import { createEventLog } from './event-log.ts'

const open = (kept = { events: 3, size: 10 }) => createEventLog<string>(kept)
const missed = (log: ReturnType<typeof open>, id: string) => log.since(id)?.map(({ event }) => event)

test('a reader gets what came after the last event it has seen', () => {
  const log = open()
  const before = log.position()
  log.publish('a')
  const seen = log.position()
  log.publish('b')
  expect(missed(log, before)).toEqual(['a', 'b'])
  expect(missed(log, seen)).toEqual(['b'])
  expect(missed(log, log.position())).toEqual([])
})

test('so many events are kept, however many more there were', () => {
  const log = open()
  const ids = Array.from('abcdefghij', event => {
    const id = log.position()
    log.publish(event)
    return id
  })
  expect(ids.map(id => missed(log, id)?.join(''))).toEqual([
    ...Array.from({ length: 7 }, () => undefined),
    'hij',
    'ij',
    'j',
  ])
})

test('of large events fewer are kept, and the latest in any case', () => {
  const log = open()
  const before = log.position()
  log.publish('a', 6)
  const seen = log.position()
  log.publish('b', 6)
  expect(missed(log, before)).toBeUndefined()
  expect(missed(log, seen)).toEqual(['b'])
  const between = log.position()
  log.publish('c', 100)
  expect(missed(log, seen)).toBeUndefined()
  expect(missed(log, between)).toEqual(['c'])
})

test('whoever was away while nobody listened has missed something', () => {
  const log = open()
  const before = log.position()
  log.skip()
  expect(missed(log, before)).toBeUndefined()
  expect(missed(log, log.position())).toEqual([])
})

test.each(['', 'x', 'abc-1', '-', 'abc-99999999999999999999'])('%j is no id of ours', id => {
  const log = open()
  const ours = log.position().split('-')[0]
  expect(log.since(id)).toBeUndefined()
  expect(log.since(`${ours}-99`)).toBeUndefined()
})

test('whoever listens hears everything, and what is told without being kept has no id', () => {
  const log = open()
  const heard: unknown[] = []
  const end = log.subscribe(({ id, event }) => heard.push([id === undefined, event]))
  log.publish('a')
  log.broadcast('b')
  end()
  log.publish('c')
  expect(heard).toEqual([
    [false, 'a'],
    [true, 'b'],
  ])
  expect(log.listeners()).toBe(0)
})
