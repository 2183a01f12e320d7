import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { torture } from './pipeline.ts'

const hasStrace = spawnSync('strace', ['-V']).status === 0

/** The short run; `npm run torture` is the long one. Every part that is missing fails the run where it counts. */
test.skipIf(!hasStrace && !process.env.CI)(
  'a daemon that is killed again and again, or whose disk fails, loses nothing and does nothing twice (needs strace)',
  { timeout: 180_000 },
  async () => {
    expect(hasStrace, 'strace is missing: apt-get install strace').toBe(true)
    const seed = Number(process.env.TORTURE_SEED ?? Date.now() % 1_000_000_000)
    const result = await torture({ seed, kills: 25, inject: true, durability: 'full', progress: () => {} })
    expect(
      result.problems,
      `replay with: npm run torture -- --only pipeline --kills 25 --seed ${seed}`,
    ).toEqual([])
  },
)
