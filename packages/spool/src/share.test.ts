import { describe, expect, it } from 'vitest'
import { createShare } from './share.ts'

/** Turns of somebody who has as much as may be taken, with a single file of somebody else in between. */
function sharesAfter(turns: number, took: (files: number) => number): number {
  const share = createShare()
  for (let n = 0; n < turns; n++) {
    const files = n % 3 === 0 ? 1 : share.size() + (n % 2)
    share.took(files, took(files))
  }
  return share.size()
}

describe('the share of an inbox', () => {
  it('is the largest at first, and where files take next to nothing', () => {
    expect(createShare().size()).toBe(32)
    expect(sharesAfter(200, files => 1 + 0.05 * files)).toBe(32)
  })

  it('is small where each file takes long', () => {
    expect(sharesAfter(200, files => 2 + 3 * files)).toBe(4)
    expect(sharesAfter(200, files => 2 + 1 * files)).toBe(10)
  })

  it('stays the largest where it is the commit that takes long: smaller ones would only be more commits', () => {
    expect(sharesAfter(200, files => 100 + 0.05 * files)).toBe(32)
  })

  it('grows again once files are quick', () => {
    const share = createShare()
    for (let n = 0; n < 100; n++)
      share.took(n % 2 === 0 ? 1 : share.size(), n % 2 === 0 ? 3 : 3 * share.size())
    expect(share.size()).toBe(4)
    for (let n = 0; n < 100; n++) share.took(n % 2 === 0 ? 1 : share.size(), 1)
    expect(share.size()).toBe(32)
  })
})
