import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * Where the parts of Hatchway lie that are not code of this process. The same module answers in three places: run from
 * the sources, in the bundle that a clone makes of them (packages/cli/dist), and in the package from npm, which has the
 * console and the agent's side beside the bundle.
 */
const here = import.meta.dirname
const ownPackage = basename(here) === 'dist' ? dirname(here) : join(here, '..', '..', '..', 'cli')

export const isClone: boolean = existsSync(join(ownPackage, 'src'))
/** the clone, or the installed package: what no agent may have mounted */
export const project: string = isClone ? join(ownPackage, '..', '..') : ownPackage
/** what people call `hatchway` */
export const program: string = join(ownPackage, 'bin', 'hatchway.mjs')
export const consoleDirectory: string = isClone
  ? join(project, 'packages', 'web', 'dist')
  : join(ownPackage, 'dist', 'console')
/** the program inside a sandbox, with its shells in `bin` */
export const agentDirectory: string = isClone
  ? join(project, 'packages', 'agent', 'dist')
  : join(ownPackage, 'dist', 'agent')
