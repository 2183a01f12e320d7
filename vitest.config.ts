import { globSync, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'

/**
 * The tests make a million files. In memory, where there is room, they cost the same on every machine; some disks take
 * ten times as long for a while after many files were deleted.
 */
function roomyFolder(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize > 4 * 1024 ** 3) return '/dev/shm'
  } catch {
    // Not on this machine.
  }
  return tmpdir()
}

/**
 * Of this run alone, and short: paths of sockets may have 107 bytes, and Podman does not notice that a container has ended
 * where its folder has a longer name. `leftovers.ts` makes it, and looks what stays in it.
 */
const temporaryFolder = join(roomyFolder(), `hw${process.pid.toString(36)}`)

const all = ['packages/**/*.test.ts', 'bench/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/*.test.ts']

/**
 * Tests of plain functions have none of this: no file, process, clock or host. A worker runs many of them, one after the
 * other: a process for each, with all it imports, takes more than most of their tests.
 */
const needsOwnProcess =
  /node:(?!crypto|path|util|buffer|assert)|\bprocess\.|\bvi\b|globalThis|import\(|setTimeout|testing|(onTest|before|after)(Finished|All|Each)/
const sharing = globSync(all, { cwd: import.meta.dirname, exclude: ['**/node_modules'] }).filter(
  file => !needsOwnProcess.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
)

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'sharing', include: sharing, isolate: false } },
      {
        extends: true,
        test: {
          name: 'alone',
          include: all,
          exclude: [...configDefaults.exclude, ...sharing],
          globalSetup: 'packages/testing/src/leftovers.ts',
        },
      },
    ],
    // Tests start the program as people do: from the bundle.
    globalSetup: 'packages/testing/src/build-program.ts',
    pool: 'forks',
    // Twice as many as cores: the proofs wait for daemons, sandboxes and browsers most of their time.
    maxWorkers: 4,
    env: {
      TMPDIR: temporaryFolder,
      // For processes that tests start from the sources. The command line has one of its own, for its own settings of the
      // engine: with others, what is found there is thrown away.
      TEST_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'tests'),
    },
    testTimeout: 180_000,
    hookTimeout: 60_000,
  },
})
