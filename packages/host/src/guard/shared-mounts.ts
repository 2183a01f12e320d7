import { realpathSync } from 'node:fs'
import { sep } from 'node:path'

/**
 * Directories of the host that the configuration gives to groups. What one group writes there, others read: so a group
 * counts as having read what those have read that can write where it reads. And wiping a group does not clean them.
 */
export interface SharedMounts {
  /** groups that can write where this one reads, also by way of others */
  writersFor(folder: string): readonly string[]
  /** whether the group has a directory beside its own that it can write */
  writes(folder: string): boolean
}

interface GroupMounts {
  mounts?: readonly { from: string; writable: boolean }[] | undefined
}

/** Folders are told apart without case. `registered`: how those are written that are registered. */
export function findSharedMounts(
  groups: Readonly<Record<string, GroupMounts>>,
  registered: () => readonly string[] = () => [],
): SharedMounts {
  const all = Object.entries(groups).flatMap(([folder, { mounts = [] }]) =>
    mounts.map(({ from, writable }) => ({ folder, writable, path: realPath(from) })),
  )
  const written = (folder: string) => registered().find(one => isSame(one, folder)) ?? folder
  const direct = (folder: string): string[] =>
    all
      .filter(one => isSame(one.folder, folder))
      .flatMap(one => all.filter(other => other.writable && overlap(one.path, other.path)))
      .map(other => written(other.folder))
  return {
    writersFor(folder) {
      const found = new Set([folder])
      // The set grows while it is gone through.
      for (const reader of found) for (const writer of direct(reader)) found.add(writer)
      found.delete(folder)
      return [...found]
    },
    writes: folder => all.some(one => isSame(one.folder, folder) && one.writable),
  }
}

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()
const within = (path: string, parent: string): boolean =>
  path.startsWith(parent.endsWith(sep) ? parent : parent + sep)
const overlap = (a: string, b: string): boolean => a === b || within(a, b) || within(b, a)

/** A directory that is not there cannot be mounted; it may be made under this name later. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return path
    throw error
  }
}
