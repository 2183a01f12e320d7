import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Group, OutgoingFile } from '@hatchway/protocol'
import { openDirectory, post, reasonOf } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Layout } from '../base/layout.ts'
import type { Retries } from '../base/retry.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { Store } from '../store/types.ts'

export interface SnapshotFileOptions {
  layout: Layout
  store: Pick<Store, 'group'>
  log: Logger
  retries: Pick<Retries, 'inBackground'>
}

/**
 * Writes one file of a group's directory, which its agent can read and may have tampered with. `contentFor` says what is
 * in it; undefined: there is to be none, `unchanged`: whatever lies there stays.
 *
 * A group's directory that cannot be written to affects that group only; a disk that is full is tried again.
 */
export function createSnapshotFile(
  name: string,
  contentFor: (group: Group) => OutgoingFile | 'unchanged' | undefined,
  { layout, store, log, retries }: SnapshotFileOptions,
): (group: Group) => void {
  const again = new Set<string>()
  const write = (group: Group) => {
    const file = contentFor(group)
    const directory = join(layout.ipc, group.folder)
    if (file === 'unchanged') return
    if (!file) return remove(directory, name)
    if (isWritten(directory, file)) return
    post(directory, file.content, { name: file.path, staging: layout.staging, mode: 0o644 })
  }
  return group => {
    const { folder } = group
    try {
      write(group)
    } catch (error) {
      const reason = reasonOf(error)
      if (!isStorageFailure(error)) {
        log.warn({ group: folder, file: name, reason }, 'a snapshot could not be written')
      } else if (!again.has(folder)) {
        again.add(folder)
        retries.inBackground('writing a snapshot', () => {
          const current = store.group(folder)
          if (current) write(current)
          again.delete(folder)
        })
      }
    }
  }
}

/** A dialect that has no such file for this group: what lies there was meant for somebody else's eyes. */
function remove(directory: string, name: string): void {
  const handle = openDirectory(directory)
  if (typeof handle === 'string') return
  try {
    const path = `${handle.path}/${name}`
    if (lstatSync(path, { throwIfNoEntry: false })) unlinkSync(path)
  } finally {
    handle.close()
  }
}

/** Whether the file is there already, word for word. A link, or anything that is no plain file, is not it. */
function isWritten(directory: string, file: OutgoingFile): boolean {
  const handle = openDirectory(directory)
  if (typeof handle === 'string') return false
  try {
    const path = `${handle.path}/${file.path}`
    const about = lstatSync(path, { throwIfNoEntry: false })
    const size = Buffer.byteLength(file.content)
    if (!about?.isFile() || about.size !== size) return false
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      // Its owner may have exchanged it in between: no more is read than it should hold.
      const bytes = Buffer.allocUnsafe(size + 1)
      if (!fstatSync(fd).isFile() || readSync(fd, bytes, 0, size + 1, 0) !== size) return false
      return bytes.toString('utf8', 0, size) === file.content
    } finally {
      closeSync(fd)
    }
  } finally {
    handle.close()
  }
}
