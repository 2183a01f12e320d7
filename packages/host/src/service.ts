/** For files with services of your own: `import { defineService } from 'hatchway/service'`. */

export type { ServiceContext } from './commands/service-tools.ts'
export type { TrustLabels } from './guard/labels.ts'
export { defineService, ServiceRefusal } from './services/define.ts'
