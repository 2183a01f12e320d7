import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/**
 * The tests make a million files. In memory, where there is room, they cost the same on every machine; some disks take
 * ten times as long for a while after many files were deleted.
 */
function roomyFolder(): Record<string, string> {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > 4 * 1024 ** 3 ? { TMPDIR: '/dev/shm' } : {}
  } catch {
    return {}
  }
}

export default defineConfig({
  test: {
    include: ['packages/**/*.test.ts', 'bench/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/*.test.ts'],
    // Tests start the program as people do: from the bundle.
    globalSetup: 'packages/testing/src/build-program.ts',
    pool: 'forks',
    // Twice as many as cores: the proofs wait for daemons, sandboxes and browsers most of their time.
    maxWorkers: 4,
    env: {
      ...roomyFolder(),
      // For processes that tests start from the sources. The command line has one of its own, for its own settings of the
      // engine: with others, what is found there is thrown away.
      TEST_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'tests'),
    },
    testTimeout: 180_000,
    hookTimeout: 60_000,
  },
})
