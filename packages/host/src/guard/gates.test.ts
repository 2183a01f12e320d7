import { describe, expect, test } from 'vitest'
import type { Gate } from '../base/taint.ts'
import {
  forbiddenBy,
  gates,
  isNeverHeld,
  type Reach,
  reachOfLabels,
  type Seen,
  seenIn,
  taintOfLabels,
  tightened,
} from './gates.ts'

/** Written out once more, by hand: whoever changes a cell has to change it here, too, and think. */
const expected: readonly [Seen, Reach, Gate][] = [
  ['clean', 'local', 'allow'],
  ['clean', 'sink', 'allow'],
  ['clean', 'dangerous', 'allow'],
  ['clean', 'both', 'allow'],
  ['corrupted', 'local', 'allow'],
  ['corrupted', 'sink', 'inspect'],
  ['corrupted', 'dangerous', 'inspect'],
  ['corrupted', 'both', 'ask'],
  ['secret', 'local', 'allow'],
  ['secret', 'sink', 'inspect'],
  ['secret', 'dangerous', 'allow'],
  ['secret', 'both', 'ask'],
  ['both', 'local', 'allow'],
  ['both', 'sink', 'ask'],
  ['both', 'dangerous', 'ask'],
  ['both', 'both', 'ask'],
]

describe('the table of gates', () => {
  test.each(expected)('%s × %s: %s', (seen, reach, gate) => {
    expect(gates[seen][reach]).toBe(gate)
  })

  test('has no other cells', () => {
    expect(Object.values(gates).flatMap(row => Object.keys(row))).toHaveLength(expected.length)
  })

  test('is never looser for having read more', () => {
    const strictness: Record<Gate, number> = { allow: 0, inspect: 1, ask: 2, block: 3 }
    for (const reach of ['local', 'sink', 'dangerous', 'both'] as const) {
      for (const less of ['clean', 'corrupted', 'secret'] as const) {
        expect(strictness[gates.both[reach]]).toBeGreaterThanOrEqual(strictness[gates[less][reach]])
        expect(strictness[gates[less][reach]]).toBeGreaterThanOrEqual(strictness[gates.clean[reach]])
      }
    }
  })

  test('never lets all three of the trifecta pass unseen', () => {
    for (const reach of ['sink', 'both'] as const) expect(gates.both[reach]).toBe('ask')
  })
})

describe('labels', () => {
  test('that are not given count as the worst', () => {
    expect(reachOfLabels({})).toBe('both')
    expect(taintOfLabels({})).toEqual({ corrupted: true, secret: true })
  })

  test.each([
    [{ public_sink: 'no', dangerous_writes: 'no' }, 'local'],
    [{ public_sink: 'yes', dangerous_writes: 'no' }, 'sink'],
    [{ public_sink: 'no', dangerous_writes: 'yes' }, 'dangerous'],
    [{ public_sink: 'no' }, 'dangerous'],
  ] as const)('%o reach %s', (labels, reach) => {
    expect(reachOfLabels(labels)).toBe(reach)
  })

  test('can be made stricter by somebody else, and never looser', () => {
    expect(tightened({ public_sink: 'no' }, { public_sink: 'yes' })).toEqual({ public_sink: 'yes' })
    expect(tightened({ public_sink: 'yes' }, { public_sink: 'no' })).toEqual({ public_sink: 'yes' })
    expect(tightened({}, { public_sink: 'no' })).toEqual({})
    expect(tightened({}, { secret_data: 'forbidden' })).toEqual({ secret_data: 'forbidden' })
    expect(tightened({ public_source: 'forbidden' }, { public_source: 'yes' })).toEqual({
      public_source: 'forbidden',
    })
  })

  test('that forbid are told', () => {
    expect(forbiddenBy({ public_sink: 'yes', secret_data: 'forbidden' })).toBe('secret_data')
    expect(forbiddenBy({ public_sink: 'yes' })).toBe(undefined)
  })
})

test('what was seen is the sum of both', () => {
  expect(seenIn({ corrupted: false, secret: false })).toBe('clean')
  expect(seenIn({ corrupted: true, secret: false })).toBe('corrupted')
  expect(seenIn({ corrupted: false, secret: true })).toBe('secret')
  expect(seenIn({ corrupted: true, secret: true })).toBe('both')
})

test('only what stays local is never held, whatever was read: so may be seen of an answer before it is whole', () => {
  expect((['local', 'sink', 'dangerous', 'both'] as const).filter(isNeverHeld)).toEqual(['local'])
})
