import { join } from 'node:path'

/** Where things are that tests start, load or compare with. */
export const projectRoot = join(import.meta.dirname, '..', '..', '..')
/** what people call `hatchway` */
export const hatchwayProgram = join(projectRoot, 'packages', 'cli', 'bin', 'hatchway.mjs')
export const guardedService = join(import.meta.dirname, 'services', 'guarded.service.ts')
export const rigService = join(import.meta.dirname, 'services', 'rig.service.ts')
export const diceExample = join(projectRoot, 'examples', 'dice.service.ts')
