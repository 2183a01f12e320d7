import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Layout } from '../../base/layout.ts'
import { isClone, project } from '../../base/parts.ts'
import type { ChannelKind } from './kind.ts'

/** package.json and lock file of what this release was tested with */
export const lockFolder = (kind: string): string =>
  isClone
    ? join(project, 'packages', 'host', 'src', 'plugins', 'channels', kind)
    : join(project, 'dist', 'channels', kind)

/** Installed by `channels add` in the data directory; a clone has it where its set-up for tests installs it. */
const placesOf = (layout: Layout, kind: string): string[] => [join(layout.channels, kind), lockFolder(kind)]

/** The folder in whose `node_modules` all of its packages are; undefined: they are not installed. */
export function findLibrary(
  layout: Layout,
  { name, library = [] }: Pick<ChannelKind, 'name' | 'library'>,
): string | undefined {
  return placesOf(layout, name).find(place =>
    library.every(one => existsSync(join(place, 'node_modules', one, 'package.json'))),
  )
}

export function createLibrary(layout: Layout, kind: Pick<ChannelKind, 'name' | 'title' | 'library'>) {
  return async <T>(name: string): Promise<T> => {
    const place = findLibrary(layout, kind)
    if (place === undefined)
      throw new Error(`${kind.title} is not installed. Run: npx hatchway channels add ${kind.name}`)
    const path = createRequire(join(place, 'package.json')).resolve(name)
    // The one place where a library gets its type: it is the version of the lock file, whose types were checked.
    return (await import(pathToFileURL(path).href)) as T
  }
}
