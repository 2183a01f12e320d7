/** For files with services of your own: `import { defineService } from '@hatchway/host/service'`. */

export type { ServiceContext, TrustLabels } from './commands/service-tools.ts'
export { defineService, ServiceRefusal } from './services/define.ts'
