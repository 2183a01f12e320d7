import { describe, expect, test } from 'vitest'
import { createKeyedQueue, createWorkQueue } from './keyed-queue.ts'

const takeAll = (queue: ReturnType<typeof createKeyedQueue<string>>): string[] => {
  const taken: string[] = []
  for (let turn = queue.next(); turn; turn = queue.next()) taken.push(turn.item)
  return taken
}

describe('a keyed queue', () => {
  test('keys take turns, and the items of each keep their order', () => {
    const queue = createKeyedQueue<string>({ perKey: 10 })
    for (const item of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(item.slice(0, 1), item)
    expect(takeAll(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  test('so many of one key and of all run at once', () => {
    const queue = createKeyedQueue<string>({ perKey: 2, all: 3 })
    for (const item of ['a1', 'a2', 'a3', 'b1', 'b2']) queue.add(item.slice(0, 1), item)
    expect(takeAll(queue)).toEqual(['a1', 'b1', 'a2'])
    queue.done('b')
    expect(takeAll(queue)).toEqual(['b2'])
    queue.done('a')
    expect(takeAll(queue)).toEqual(['a3'])
  })

  test('a key that was full goes behind those that wait already', () => {
    const queue = createKeyedQueue<string>({ perKey: 1, all: 1 })
    for (const item of ['a1', 'a2', 'b1', 'c1']) queue.add(item.slice(0, 1), item)
    const order: string[] = []
    for (let turn = queue.next(); turn; turn = queue.next()) {
      order.push(turn.item)
      queue.done(turn.key)
    }
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2'])
  })

  test('what could not begin goes back in the order it had', () => {
    const queue = createKeyedQueue<string>({ perKey: 2 })
    for (const item of ['a1', 'a2', 'a3']) queue.add('a', item)
    for (const item of takeAll(queue).toReversed()) {
      queue.putBack('a', item)
      queue.done('a')
    }
    expect(takeAll(queue)).toEqual(['a1', 'a2'])
  })

  test('several of one key share one place', () => {
    const queue = createKeyedQueue<string>({ all: 1 })
    for (const item of ['a1', 'a2', 'x', 'a3']) queue.add('a', item)
    expect(queue.next()).toEqual({ key: 'a', item: 'a1' })
    expect(queue.more('a', item => item.startsWith('a'))).toEqual(['a2'])
    expect(queue.next()).toBeUndefined()
    queue.done('a')
    expect(queue.next()?.item).toBe('x')
  })

  test('what is removed or cleared is not given out, and nothing of a key remains', () => {
    const queue = createKeyedQueue<string>({ perKey: 5 })
    for (const item of ['a1', 'a2', 'b1']) queue.add(item.slice(0, 1), item)
    queue.remove('a', 'a1')
    queue.remove('nobody', 'a1')
    expect([queue.waiting('a'), queue.waiting('b'), queue.waiting('nobody')]).toEqual([1, 1, 0])
    expect(queue.next()?.item).toBe('a2')
    expect(queue.clear()).toEqual(['b1'])
    expect(queue.next()).toBeUndefined()
  })
})

describe('work queue', () => {
  test('one at a time for each key, in the order of asking; others are not held up', async () => {
    const queue = createWorkQueue()
    const gate = Promise.withResolvers<void>()
    const order: string[] = []
    const first = queue.run('a', undefined, async () => {
      await gate.promise
      order.push('first')
    })
    const second = queue.run('a', undefined, async () => void order.push('second'))
    await queue.run('b', undefined, async () => void order.push('another'))
    gate.resolve()
    await Promise.all([first, second])
    expect(order).toEqual(['another', 'first', 'second'])
  })

  test('whoever gives up does not run, and nobody overtakes because of it', async () => {
    const queue = createWorkQueue()
    const gate = Promise.withResolvers<void>()
    const order: string[] = []
    const first = queue.run('a', undefined, async () => {
      await gate.promise
      order.push('first')
    })
    const leaving = new AbortController()
    const second = queue.run('a', leaving.signal, async () => void order.push('second'))
    const third = queue.run('a', undefined, async () => void order.push('third'))
    expect(queue.waiting('a')).toBe(2)
    leaving.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    await expect(queue.run('a', leaving.signal, async () => {})).rejects.toThrow('gone')
    gate.resolve()
    await Promise.all([first, third])
    expect(order).toEqual(['first', 'third'])
  })

  test('a failure, thrown or rejected, gives the turn on', async () => {
    const queue = createWorkQueue()
    await expect(queue.run('a', undefined, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    const thrown = queue.run('a', undefined, () => {
      throw new Error('never')
    })
    await expect(thrown).rejects.toThrow('never')
    expect(await queue.run('a', undefined, async () => 1)).toBe(1)
  })

  test('work begins after `run` has returned, however free the way is', async () => {
    const queue = createWorkQueue()
    let hasBegun = false
    const over = queue.run('a', undefined, async () => {
      hasBegun = true
    })
    expect(hasBegun).toBe(false)
    await over
    expect(hasBegun).toBe(true)
  })

  test('stopping rejects what waits and what comes, and waits for what runs', async () => {
    const queue = createWorkQueue({ all: 1 })
    const gate = Promise.withResolvers<void>()
    let isOver = false
    const first = queue.run('a', undefined, async () => {
      await gate.promise
      isOver = true
    })
    const second = queue.run('b', undefined, async () => {})
    const stopping = queue.stop(new Error('stopping'))
    await expect(second).rejects.toThrow('stopping')
    await expect(queue.run('c', undefined, async () => {})).rejects.toThrow('stopping')
    gate.resolve()
    await Promise.all([first, stopping])
    expect(isOver).toBe(true)
  })
})
