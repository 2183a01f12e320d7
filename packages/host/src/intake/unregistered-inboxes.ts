import { type FSWatcher, lstatSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { folderSchema } from '@hatchway/protocol'
import type { Inbox } from '@hatchway/spool'
import { possibleDrops } from '../base/layout.ts'

/**
 * Directories below `ipc/` that belong to no registered group. What lies in them is refused in the open (promise 8)
 * instead of being overlooked: they are taken from like any other, and the intake finds no group for them.
 */
export interface UnregisteredInboxes {
  stop(): void
}

const everyMs = 30_000

export function watchUnregisteredInboxes(options: {
  ipc: string
  isRegistered(folder: string): boolean
  add(inbox: Inbox): void
  failed(error: unknown): void
}): UnregisteredInboxes {
  const { ipc, isRegistered, add } = options
  const known = new Map<string, string>()

  const scan = () => {
    try {
      scanOnce()
    } catch (error) {
      // A disk that fails is tried again at the next look; nothing here may end the host.
      options.failed(error)
    }
  }
  const scanOnce = () => {
    for (const folder of readdirSync(ipc)) {
      if (isRegistered(folder) || !folderSchema.safeParse(folder).success) continue
      const path = join(ipc, folder)
      const subdirectories = possibleDrops.filter(name => isDirectory(join(path, name)))
      if (subdirectories.length === 0 || known.get(folder) === subdirectories.join()) continue
      known.set(folder, subdirectories.join())
      add({ id: folder, path, subdirectories })
    }
  }

  scan()
  let watcher: FSWatcher | undefined
  let soon: NodeJS.Timeout | undefined
  try {
    // A new directory gets its subdirectories a moment after it appears.
    watcher = watch(ipc, { persistent: false }, () => {
      soon ??= setTimeout(() => {
        soon = undefined
        scan()
      }, 200)
    })
    watcher.on('error', () => watcher?.close())
  } catch {
    watcher = undefined
  }
  const timer = setInterval(scan, everyMs)
  return {
    stop() {
      watcher?.close()
      clearTimeout(soon)
      clearInterval(timer)
    },
  }
}

/** A directory that we may not enter has nothing for us, and must not end the look at the others. */
function isDirectory(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}
