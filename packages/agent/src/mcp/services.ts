import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Services, servicesSchema } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { createDirectoryWatch } from './directory-watch.ts'
import { complain } from './failure.ts'
import { readSnapshot } from './snapshot.ts'

/** The services the host offers this group, as `services.json` lists them. */
export interface OfferedServices {
  /** as they are now */
  read(): Services
  /** they are others than before */
  onChange: (() => void) | undefined
}

const name = 'services.json'
/** A list of tools much longer than this is more than clients read in one message; they would hang up. */
const largest = 4_194_304
const none: Services = { tools: [], questions: null, commands: [] }

/**
 * Looks when it is asked, when the directory rings, and every so often: where no event arrives that has to do. Nothing
 * here keeps the process alive. A file that is of no use leaves the list as it was; none at all means no services.
 */
export function watchServices(options: {
  ipc: string
  events: 'auto' | 'off'
  everyMs: number
}): OfferedServices {
  const { ipc, events, everyMs } = options
  const path = join(ipc, name)
  let services = none
  let seen: string | undefined
  let complaint: string | undefined

  const read = () => {
    const mark = markOf(path)
    if (mark === seen) return services
    seen = mark
    const snapshot = readSnapshot(ipc, name, servicesSchema, largest)
    if ('problem' in snapshot && !snapshot.missing) {
      complain(`${snapshot.problem}; the services stay as they were`)
      return services
    }
    const found = 'value' in snapshot ? snapshot.value : none
    if (!isDeepStrictEqual(found, services)) {
      services = found
      offered.onChange?.()
    }
    return services
  }
  const watch = createDirectoryWatch(ipc, changed => {
    if (changed === null || changed === name) read()
  })
  const listen = () => {
    try {
      watch.open()
      complaint = undefined
    } catch (error) {
      const reason = reasonOf(error)
      // A directory that is not there is nothing to complain of before something is asked of it.
      if (reason !== complaint && existsSync(ipc)) {
        complain(`services.json cannot be watched and is read at intervals instead: ${reason}`)
      }
      complaint = reason
    }
  }

  const offered: OfferedServices = { read, onChange: undefined }
  if (events === 'auto') listen()
  setInterval(() => {
    // Again and again, as the directory may only come later, or be replaced.
    if (events === 'auto') listen()
    read()
  }, everyMs).unref()
  return offered
}

/** Changes with the file; undefined where there is none. */
function markOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return found && [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':')
  } catch (error) {
    return reasonOf(error)
  }
}
