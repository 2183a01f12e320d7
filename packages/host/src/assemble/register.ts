import type { NewGroup } from '../commands/groups.ts'
import type { Config } from '../config.ts'
import { openHost } from './host.ts'

/** Registers many groups at once on a data directory that no daemon holds. */
export async function registerGroups(config: Config, groups: readonly NewGroup[]): Promise<void> {
  const host = await openHost(config, { watch: false })
  try {
    for (const group of groups) {
      const outcome = await host.addGroup(group)
      if (!outcome.ok) throw new Error(`${group.folder}: ${outcome.error.message}`)
    }
  } finally {
    await host.stop()
  }
}
