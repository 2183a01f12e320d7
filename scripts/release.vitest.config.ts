import { defineConfig } from 'vitest/config'

/** What a release does, with real git, changesets and npm: minutes, so it is run before a release, and not by npm test. */
export default defineConfig({ test: { include: ['scripts/release.proof.ts'], testTimeout: 300_000 } })
