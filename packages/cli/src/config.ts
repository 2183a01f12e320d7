/** For `hatchway.config.ts`: `import { defineConfig } from 'hatchway/config'`. */
export * from '@hatchway/host/config'
