import type { Group } from '@hatchway/protocol'

/**
 * The groups in memory, so that every file's sender is looked up at the moment of use (promise 2) without a query.
 * Folders compare without case, as some file systems do; keys are never object properties (`__proto__`).
 */
export interface Registry {
  byFolder(folder: string): Group | undefined
  /** whether a folder of this name, in whatever case, is there */
  isTaken(folder: string): boolean
  /** exactly, else in another of the forms that look the same */
  byJid(jid: string): Group | undefined
  all(): readonly Group[]
  add(group: Group): void
  remove(folder: string): void
  replace(groups: Iterable<Group>): void
}

export function createRegistry(): Registry {
  const folders = new Map<string, Group>()
  const jids = new Map<string, Group>()
  /** those that are kept in another form than NFC, by that */
  const normalJids = new Map<string, Group>()
  const lowerCase = new Set<string>()
  let list: readonly Group[] | undefined

  const add = (group: Group) => {
    folders.set(group.folder, group)
    jids.set(group.jid, group)
    const normal = group.jid.normalize('NFC')
    if (normal !== group.jid) normalJids.set(normal, group)
    lowerCase.add(group.folder.toLowerCase())
    list = undefined
  }
  return {
    byFolder: folder => folders.get(folder),
    isTaken: folder => lowerCase.has(folder.toLowerCase()),
    byJid(jid) {
      const exact = jids.get(jid)
      if (exact) return exact
      const normal = jid.normalize('NFC')
      return jids.get(normal) ?? normalJids.get(normal)
    },
    all: () => {
      list ??= [...folders.values()]
      return list
    },
    add,
    remove(folder) {
      const group = folders.get(folder)
      if (!group) return
      folders.delete(folder)
      jids.delete(group.jid)
      const normal = group.jid.normalize('NFC')
      if (normalJids.get(normal) === group) normalJids.delete(normal)
      lowerCase.delete(folder.toLowerCase())
      list = undefined
    },
    replace(groups) {
      folders.clear()
      jids.clear()
      normalJids.clear()
      lowerCase.clear()
      list = undefined
      for (const group of groups) add(group)
    },
  }
}
