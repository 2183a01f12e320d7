import { type FSWatcher, watch } from 'node:fs'
import { basename } from 'node:path'
import { errorCode, type PinnedDirectory } from './directory.ts'
import { isPostedName } from './names.ts'

/**
 * Events say "look", never what there is to see: names in them may be wrong, late, doubled or, when the kernel's
 * queue is full, silently missing (lesson 17). Rings for temporary files are not passed on.
 */
export interface Doorbell {
  close(): void
}

export function hangDoorbell(
  directory: PinnedDirectory,
  ring: (itself: boolean) => void,
  lost: () => void,
): Doorbell | string {
  let watcher: FSWatcher
  // Watching through the handle keeps a link in the directory's place from being watched instead.
  const own = basename(directory.path)
  try {
    watcher = watch(directory.path, { persistent: false }, (_event, name) => {
      if (name === null || name === own) ring(true)
      else if (isPostedName(name)) ring(false)
    })
  } catch (error) {
    return errorCode(error)
  }
  watcher.on('error', lost)
  return watcher
}
