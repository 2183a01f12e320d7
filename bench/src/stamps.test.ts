import { expect, test } from 'vitest'
import { gather, latencies, stampLog } from './stamps.ts'

test('latencies pair by name, whatever the order, and wait for what is still under way', async () => {
  const sent = stampLog()
  sent.add('a', 1_000n)
  sent.add('b', 2_000n)
  const done = stampLog()
  done.add('b', 12_000n)
  let asked = 0
  const take = async () => {
    if (++asked === 2) done.add('a', 6_000n)
    return done.take()
  }
  const stamps = sent.take()
  expect(latencies(stamps, await gather(take, stamps.names, 60))).toEqual([5, 10])
})

test('what never comes out is left for the caller to count, and what comes out twice is counted', async () => {
  const done = stampLog()
  done.add('a', 1n)
  done.add('a', 2n)
  const { at, repeated } = await gather(async () => done.take(), ['a', 'lost'], 0)
  expect([...at.keys()]).toEqual(['a'])
  expect(repeated).toBe(1)
})

test('whoever waits for a number of files is told when it is reached, named or only counted', async () => {
  const log = stampLog()
  const reached = log.waitFor(3)
  log.add('a', 1n)
  log.count(2)
  await reached
  expect(log.total()).toBe(3)
})
