import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDirectory } from './directory.ts'
import { isLarge, listDirectory, startScan } from './listing.ts'
import { temporaryFolder } from './testing/rig.ts'

function open(path: string) {
  const directory = openDirectory(path)
  if (typeof directory === 'string') throw new Error(`${path} is ${directory}`)
  onTestFinished(() => directory.close())
  return directory
}

describe('listing a directory', () => {
  it('returns posted files with their times, and other files separately', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, '1700000000000-x.json'), '')
    writeFileSync(join(folder, 'message-1.json'), '')
    utimesSync(join(folder, 'message-1.json'), 1_600_000_000, 1_600_000_000.25)
    writeFileSync(join(folder, 'x.json.tmp'), '')
    mkdirSync(join(folder, '.tmp'))
    const { names, times, others } = listDirectory(open(folder))
    expect(names).toEqual(['1700000000000-x.json', 'message-1.json'])
    expect(times).toEqual([1_700_000_000_000, 1_600_000_000_250])
    expect(others.sort()).toEqual(['.tmp', 'x.json.tmp'])
  })

  it('keeps names that are not ASCII as bytes', () => {
    const folder = temporaryFolder()
    const bytes = Buffer.from([0x61, 0xff, 0x2e, 0x6a, 0x73, 0x6f, 0x6e])
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), bytes]), '')
    expect(listDirectory(open(folder)).names).toEqual([bytes])
  })

  it('happens in slices if there are very many names', ({ skip }) => {
    const folder = temporaryFolder()
    const posted = Array.from({ length: 7000 }, (_, i) => `${1_700_000_000_000 + i}-000000-deadbeef.json`)
    for (const name of posted) writeFileSync(join(folder, name), '')
    writeFileSync(join(folder, 'x.tmp'), '')
    const directory = open(folder)
    skip(!isLarge(directory), 'this file system does not report directory sizes')
    const look = startScan(directory, 100_000)
    let slices = 1
    let listing = look.next(directory)
    for (; !listing; slices++) listing = look.next(directory)
    expect(slices).toBeGreaterThan(3)
    expect([...listing.names].sort()).toEqual(posted)
    expect(listing.others).toEqual(['x.tmp'])

    const bounded = startScan(directory, 3000)
    let part = bounded.next(directory)
    while (!part) part = bounded.next(directory)
    expect(part.names).toHaveLength(3000)
    startScan(directory, 3000).close()
  })
})
