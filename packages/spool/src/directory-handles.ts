import { type DirectoryHandle, type OpenFailure, openDirectory } from './directory.ts'
import { pathOf, type Subdirectory } from './inbox-state.ts'

/**
 * Open handles of directories. A handle is kept while a watcher would report that the directory was moved, removed or
 * replaced, so that a single file costs no extra open call. Without a watcher it is closed after the round.
 */
export interface DirectoryHandles {
  get(subdirectory: Subdirectory): DirectoryHandle | OpenFailure
  release(subdirectory: Subdirectory): void
  releaseIdle(): void
  /** all open ones */
  all(): Iterable<Subdirectory>
}

/** Handles that stay open between rounds. A process may have a few thousand. */
const keptOpenLimit = 32

export function createDirectoryHandles(): DirectoryHandles {
  const open = new Set<Subdirectory>()

  const release = (subdirectory: Subdirectory) => {
    if (!subdirectory.handle) return
    subdirectory.handle.close()
    subdirectory.handle = undefined
    open.delete(subdirectory)
  }

  return {
    get(subdirectory) {
      if (subdirectory.handle) return subdirectory.handle
      const handle = openDirectory(pathOf(subdirectory))
      if (typeof handle === 'string') return handle
      subdirectory.handle = handle
      open.add(subdirectory)
      return handle
    },
    release,
    releaseIdle() {
      let over = open.size - keptOpenLimit
      for (const subdirectory of open) if (!subdirectory.watcher || over-- > 0) release(subdirectory)
    },
    all: () => open,
  }
}
