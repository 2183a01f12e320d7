/** For files with services of your own: `import { defineService } from 'hatchway/service'`. */
export * from '@hatchway/host/service'
