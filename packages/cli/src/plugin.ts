/** For plugins: `import { definePlugin } from 'hatchway/plugin'`. docs/extending.md explains each of them. */
export * from '@hatchway/host/plugin'
