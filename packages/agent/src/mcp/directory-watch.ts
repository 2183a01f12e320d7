import { type FSWatcher, statSync, watch } from 'node:fs'

/** Reports that something in a directory may have changed. Events are only a hint: nobody relies on them. */
export interface DirectoryWatch {
  /** Begins to watch, and begins anew where the directory was replaced; throws where that cannot be done. */
  open(): void
}

export function createDirectoryWatch(
  directory: string,
  /** the name of what changed; null: that is not known */
  onChange: (name: string | null) => void,
): DirectoryWatch {
  let watched: { watcher: FSWatcher; directory: string } | undefined
  return {
    open() {
      // Before the watch: a directory that was replaced in between is then found to be another one the next time.
      const identity = identityOf(directory)
      if (watched?.directory === identity) return
      watched?.watcher.close()
      watched = undefined
      const watcher = watch(directory, { persistent: false })
      watched = { watcher, directory: identity }
      watcher.on('change', (_event, name) => onChange(name === null ? null : String(name)))
      watcher.on('error', () => {
        watcher.close()
        if (watched?.watcher === watcher) watched = undefined
      })
    },
  }
}

function identityOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true })
  return `${dev}:${ino}`
}
