import type { ClaimedFile } from '@hatchway/spool'
import { platform } from '../base/platform.ts'
import type { CommandRow, Store } from '../store/types.ts'

/**
 * When the machine itself goes down, a claim's rename may be undone while the decision is already durable: the file
 * lies in its directory again and looks unclaimed. Nothing else brings back the same name, inode and time, so on the
 * first start after a reboot such a file is known by them and not executed a second time (promise 3).
 *
 * In ordinary running this must not be asked: a fast writer can make a new file that has all three in common with the
 * one just removed.
 */
export interface Reboot {
  handledBefore(file: ClaimedFile): CommandRow | undefined
  /** everything that was there at the start has been handled */
  over(): void
}

const looksBack = 200_000

export function createReboot(store: Store, currentBoot = bootId()): Reboot {
  const before = store.meta('boot')
  let known: Map<string, CommandRow> | undefined
  if (before !== undefined && before !== currentBoot) {
    known = new Map(
      store
        .commands({ limit: looksBack })
        .map(row => [keyOf(row.group, row.directory, row.file, row.inode, row.mtimeUs), row]),
    )
  }
  return {
    handledBefore: file =>
      known?.get(keyOf(file.inbox, file.subdirectory, file.name, file.inode, file.mtimeUs)),
    over() {
      known = undefined
      store.setMeta('boot', currentBoot)
    },
  }
}

const keyOf = (group: string, directory: string, file: string, inode: number, mtimeUs: number) =>
  `${group}/${directory}/${file}/${inode}/${mtimeUs}`

/** Where the system does not tell, every start is taken for one after a reboot. */
const bootId = () => platform.bootId() ?? `unknown-${process.pid}-${Date.now()}`
