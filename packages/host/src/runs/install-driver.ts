import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { installPackages, NotInstalled, runAs } from '../base/install-packages.ts'
import type { Layout } from '../base/layout.ts'
import { lastWords } from '../base/programs.ts'
import { driverIn, driversFolder, type FoundDriver, lockFolder } from './driver-packages.ts'
import type { DriverName } from './drivers.ts'

export interface InstallDriverOptions {
  layout: Layout
  /** a folder with package.json and lock file, instead of those of this release */
  from?: string | undefined
  /** how much is on disk so far */
  progress?(bytes: number): void
}

const checkMs = 60_000

/** Its program has started once before anybody else sees it. */
export async function installDriver(name: DriverName, options: InstallDriverOptions): Promise<FoundDriver> {
  const { layout, from = lockFolder(name), progress } = options
  const place = join(driversFolder(layout), name)
  await installPackages({
    layout,
    place,
    from,
    progress,
    async check(folder, owner) {
      const made = driverIn(join(folder, 'node_modules'), name)
      if (!made) throw new NotInstalled(`npm installed no program of ${name} for this platform.`)
      const { code, said } = await runAs(owner, folder, [made.program, '--version'], checkMs)
      if (code !== 0) throw new NotInstalled(`Its program does not start on this machine: ${lastWords(said)}`)
    },
  })
  const found = driverIn(join(place, 'node_modules'), name)
  if (!found) throw new NotInstalled(`${place} was removed while it was installed.`)
  return found
}

/** Whether there was one in the data directory. Runs that use it keep it until they end. */
export function removeDriver(name: DriverName, layout: Layout): boolean {
  const place = join(driversFolder(layout), name)
  const wasThere = existsSync(place)
  rmSync(place, { recursive: true, force: true })
  return wasThere
}
