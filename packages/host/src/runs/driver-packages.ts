import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import type { Layout } from '../base/layout.ts'
import { agentDirectory, project } from '../base/parts.ts'
import type { Config } from '../config.ts'
import { type DriverName, drivers } from './drivers.ts'

/**
 * Where the packages of drivers are. `npx hatchway agents add` installs them in the data directory, which the host's user
 * owns, wherever Hatchway itself is installed. A clone has them where its set-up for tests installs them, or, from an
 * earlier version, in `node_modules`.
 */

/** package.json and lock file of what this release was tested with */
export const lockFolder = (name: DriverName): string => join(agentDirectory, 'drivers', name)

export interface FoundDriver {
  /** the `node_modules` it is in */
  modules: string
  version: string
  /** its program for this platform */
  program: string
}

/** One folder may serve several installations; then nothing else is looked at. */
const shared = () => process.env.HATCHWAY_DRIVERS || undefined
export const driversFolder = (layout: Layout): string => shared() ?? layout.drivers

const placesOf = (layout: Layout, name: DriverName): string[] => [
  join(driversFolder(layout), name, 'node_modules'),
  ...(shared() === undefined ? clonePlaces(name) : []),
]
const clonePlaces = (name: DriverName): string[] => [
  join(project, 'packages', 'agent', 'src', 'drivers', name, 'node_modules'),
  join(project, 'node_modules'),
]

/** Undefined: it is not installed, or not with its program. */
export function findDriver(layout: Layout, name: DriverName): FoundDriver | undefined {
  for (const modules of placesOf(layout, name)) {
    const found = driverIn(modules, name)
    if (found) return found
  }
  return undefined
}

export function driverIn(modules: string, name: DriverName): FoundDriver | undefined {
  const wanted = drivers[name].package
  if (!wanted) return undefined
  const manifest = join(modules, wanted.name, 'package.json')
  if (!existsSync(manifest)) return undefined
  const scope = dirname(join(modules, wanted.programs))
  const program = readdirSync(scope)
    .filter(entry => entry.startsWith(basename(wanted.programs)))
    .map(entry => join(scope, entry, wanted.program))
    .find(path => existsSync(path))
  return program === undefined ? undefined : { modules, version: versionIn(manifest), program }
}

const manifestSchema = z.object({ version: z.string() })
const versionIn = (manifest: string): string =>
  manifestSchema.parse(JSON.parse(readFileSync(manifest, 'utf8'))).version

const locked = z.object({ dependencies: z.record(z.string(), z.string()) })

/** The version that this release was tested with; undefined: the driver comes with Hatchway. */
export function testedVersion(name: DriverName): string | undefined {
  const wanted = drivers[name].package
  const file = join(lockFolder(name), 'package.json')
  if (!wanted || !existsSync(file)) return undefined
  return locked.parse(JSON.parse(readFileSync(file, 'utf8'))).dependencies[wanted.name]
}

/** Whether a driver that needs a package has none. An image may have its own. */
const isMissing = (layout: Layout, name: DriverName, image: string | undefined): boolean =>
  drivers[name].package !== undefined && image === undefined && findDriver(layout, name) === undefined

/** The first driver of the configuration that is not installed. */
export function missingDriver({ agents, groups }: Config, layout: Layout): DriverName | undefined {
  if (agents.enabled === 'no') return undefined
  return [agents, ...Object.values(groups)]
    .map(({ driver = agents.driver, image = agents.image }) => ({ driver, image }))
    .find(({ driver, image }) => isMissing(layout, driver, image))?.driver
}
