/** For files with services of your own: `import { defineService } from '@hatchway/host/service'`. */
export { defineService, ServiceRefusal } from './services/define.ts'
export type { ServiceContext, TrustLabels } from './services/types.ts'
