import { realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { RunEnvironment } from '../../../run/environment.ts'
import { ToolProblem } from './types.ts'

/** Where the file tools may look, and where they may write. The sandbox is the limit; these keep a mistake small. */
export interface Places {
  /** the real path of what the model names, which lies in one of the places */
  find(path: string, use: 'read' | 'write'): string
  /** as it is shown to the model */
  shown(path: string): string
  group: string
}

/** In a sandbox everything that is meant for the agent lies below this. */
const workspace = '/workspace'

export function createPlaces({ groupDirectory, globalDirectory, ipc }: RunEnvironment): Places {
  const isInside = groupDirectory.startsWith(workspace + sep)
  const group = real(groupDirectory)
  const readable = isInside ? [real(workspace)] : [group, real(globalDirectory)]
  const writable = isInside ? [real(workspace)] : [group]
  const hatch = real(ipc)
  return {
    group,
    find(path, use) {
      const found = real(resolve(groupDirectory, path))
      const places = use === 'read' ? readable : writable
      if (!places.some(place => lies(found, place)))
        throw new ToolProblem(
          `${path} is outside the folders that you may ${use} here: ${places.join(', ')}.`,
        )
      if (use === 'write' && lies(found, hatch))
        throw new ToolProblem(`${path} belongs to the host. Use your tools to reach the host.`)
      return found
    },
    shown: path => relative(group, path) || '.',
  }
}

const lies = (path: string, place: string) => path === place || path.startsWith(place + sep)

/** With every link followed, as far as it exists. */
function real(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path || !(error instanceof Error && 'code' in error)) throw error
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR')
      throw new ToolProblem(`${path} cannot be reached (${error.code}).`)
    return join(real(parent), basename(path))
  }
}
