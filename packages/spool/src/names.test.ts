import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claimName, compareFiles, createNames, isValidName, parseClaimName, timeOfName } from './names.ts'

describe('names of posted files', () => {
  const at = (...times: number[]) => {
    let last = 0
    return createNames(() => {
      last = times.shift() ?? last
      return last
    })
  }
  const take = (names: () => string, count: number) => Array.from({ length: count }, names)

  it('rise within a millisecond and across milliseconds', () => {
    const names = take(at(1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_001), 4)
    expect([...names].sort()).toEqual(names)
    expect(names.map(timeOfName)).toEqual([0, 0, 0, 1].map(ms => 1_700_000_000_000 + ms))
  })

  it('rise when the clock is set back', () => {
    const names = take(at(1_700_000_000_005, 1_600_000_000_000, 1_600_000_000_001, 1_700_000_000_006), 4)
    expect([...names].sort()).toEqual(names)
  })

  it('rise when a millisecond runs out of sequence numbers', () => {
    const names = take(
      createNames(() => 1_700_000_000_000, 2),
      8,
    )
    expect([...names].sort()).toEqual(names)
    expect(names.map(timeOfName)).toEqual([0, 0, 0, 1, 1, 1, 2, 2].map(ms => 1_700_000_000_000 + ms))
  })

  it('differ between two writers with the same clock', () => {
    expect(take(at(1_700_000_000_000), 1)).not.toEqual(take(at(1_700_000_000_000), 1))
  })

  it('are valid', () => {
    expect(isValidName(createNames()())).toBe(true)
  })
})

describe('names of claimed files', () => {
  const inboxes = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/)
  const subdirectories = fc.stringMatching(/^[A-Za-z0-9_-]{1,32}$/)
  const seqs = fc.integer({ min: 1, max: 999_999_999_999_999 })
  const anyName = fc.string({ unit: 'binary', minLength: 1, maxLength: 255 })

  it('can be parsed again, fit into a file name and contain only safe characters', () => {
    fc.assert(
      fc.property(seqs, inboxes, subdirectories, anyName, (seq, inbox, subdirectory, name) => {
        const text = claimName(seq, inbox, subdirectory, name)
        expect(text).toMatch(/^[A-Za-z0-9._~!-]+$/)
        expect(text.length).toBeLessThanOrEqual(255)
        expect(parseClaimName(text)).toMatchObject({ seq, inbox, subdirectory, valid: isValidName(name) })
        if (isValidName(name)) expect(parseClaimName(text)?.name).toBe(name)
      }),
    )
  })

  it.each([
    'x',
    '1~a~b',
    '1~a~b~c~d',
    '-1~a~b~c',
    '1~a/b~c~d',
    '1~a~b~../c',
    '.hatchway-probe-00',
    '1~a~b~c\n',
  ])('are not parsed from %j', text => expect(parseClaimName(text)).toBeUndefined())

  it.each([
    ['1700000000000-000000-deadbeef.json', true],
    ['message-17.json', true],
    ['__proto__.json', true],
    ['a'.repeat(120), true],
    ['a'.repeat(121), false],
    ['-rf.json', false],
    ['.hidden.json', false],
    ['a b.json', false],
    ['a\nb.json', false],
    ['a.json\n', false],
    ['a~b.json', false],
    ['ä.json', false],
    ['../x.json', false],
    ['', false],
  ])('%j is valid: %s', (name, valid) => expect(isValidName(name)).toBe(valid))
})

describe('the order of files', () => {
  const file = (name: string, mtimeUs = 0, inode = 0) => ({ name, mtimeUs, inode })

  it('follows the milliseconds in their names, then sequence number, mtime and inode', () => {
    const ordered = [
      file('1700000000000-000000-ffffffff.json', 9),
      file('1700000000000-000001-00000000.json', 8),
      file('1700000000001-zzzzzz.json', 1_700_000_000_001_100, 9),
      file('1700000000001-aaaaaa.json', 1_700_000_000_001_200, 7),
      file('1700000000001-bbbbbb.json', 1_700_000_000_001_200, 8),
      file('1700000000002.json', 5),
      file('message-1.json', 1_700_000_000_003_000),
      file('1700000000004.json', 4),
    ]
    expect([...ordered].reverse().sort(compareFiles)).toEqual(ordered)
  })
})
