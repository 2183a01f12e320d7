import { readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { deliversEvents, removeOldProbes } from './probe.ts'
import { temporaryFolder } from './testing/rig.ts'

describe('the probe', () => {
  it('finds that an ordinary directory delivers events, and leaves no file in it', async () => {
    const folder = temporaryFolder()
    expect(await deliversEvents(folder, 10_000)).toBe(true)
    expect(readdirSync(folder)).toEqual([])
  })

  it('gets the event even if the process was busy for longer than the timeout', async () => {
    const asked = deliversEvents(temporaryFolder(), 1)
    const end = performance.now() + 50
    while (performance.now() < end);
    expect(await asked).toBe(true)
  })

  it('returns undefined if it cannot write', async () => {
    const folder = temporaryFolder()
    symlinkSync(temporaryFolder(), join(folder, 'link'))
    expect(await deliversEvents(join(folder, 'missing'), 1)).toBeUndefined()
    expect(await deliversEvents(join(folder, 'link'), 1)).toBeUndefined()
    expect(await deliversEvents('/proc/self', 1)).toBeUndefined()
  })

  it('removes the files that an earlier process left', () => {
    const folder = temporaryFolder()
    for (const name of ['.hatchway-probe-0123456789ab', 'other']) writeFileSync(join(folder, name), '')
    removeOldProbes(folder)
    expect(readdirSync(folder)).toEqual(['other'])
  })
})
