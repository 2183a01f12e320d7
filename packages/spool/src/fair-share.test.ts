import { describe, expect, it } from 'vitest'
import { createFairShare } from './fair-share.ts'

/** Rounds of an inbox with unlimited files, with a single file of another inbox in between. */
function shareAfter(rounds: number, record: (files: number) => number): number {
  const share = createFairShare()
  for (let n = 0; n < rounds; n++) {
    const files = n % 3 === 0 ? 1 : share.size() + (n % 2)
    share.record(files, record(files))
  }
  return share.size()
}

describe('the share of an inbox', () => {
  it('is largest at the start, and if files take almost no time', () => {
    expect(createFairShare().size()).toBe(32)
    expect(shareAfter(200, files => 1 + 0.05 * files)).toBe(32)
  })

  it('is small if each file takes long', () => {
    expect(shareAfter(200, files => 2 + 3 * files)).toBe(4)
    expect(shareAfter(200, files => 2 + 1 * files)).toBe(10)
  })

  it('stays largest if the commit takes long, because smaller shares would only mean more commits', () => {
    expect(shareAfter(200, files => 100 + 0.05 * files)).toBe(32)
  })

  it('grows again once files are fast', () => {
    const share = createFairShare()
    for (let n = 0; n < 100; n++)
      share.record(n % 2 === 0 ? 1 : share.size(), n % 2 === 0 ? 3 : 3 * share.size())
    expect(share.size()).toBe(4)
    for (let n = 0; n < 100; n++) share.record(n % 2 === 0 ? 1 : share.size(), 1)
    expect(share.size()).toBe(32)
  })
})
