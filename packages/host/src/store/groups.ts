import { type Group, groupSchema } from '@hatchway/protocol'
import type { Connection } from './connection.ts'
import { isoOf } from './entities/instant.ts'
import { createRegistry } from './registry.ts'
import { tableOf } from './table.ts'

/** One that was said within this after another changes nothing worth a write. */
const activeAgainMs = 1000

export const groupTable = tableOf('groups', groupSchema, { trigger: 'trigger_text' })

interface GroupReads {
  group(folder: string): Group | undefined
  groups(): readonly Group[]
}

/** Inside one transaction. */
export interface GroupTransaction extends GroupReads {
  /** compared without case: two groups must never share a directory on a file system that ignores it */
  isFolderTaken(folder: string): boolean
  groupByJid(jid: string): Group | undefined
  insertGroup(group: Group): void
  /** its name and its chat; what it is stays */
  updateGroup(group: Group): void
  /** somebody said something in this chat; nothing where it is no group's, or where that was a moment ago, too */
  noteActivity(jid: string, at: number): void
}

export interface GroupStore extends GroupReads {
  /** the user that runs of this folder have where the host is root; the same for ever, and no other folder's */
  agentUser(folder: string): number
  /** those that have such a user */
  agentFolders(): readonly string[]
}

export function createGroupTable({ sql, onRollback }: Connection) {
  const registry = createRegistry()
  const load = () =>
    registry.replace(sql('SELECT * FROM groups ORDER BY added_at, rowid').iterate().map(groupTable.from))
  load()
  onRollback(load)

  const store: GroupStore = {
    group: registry.byFolder,
    groups: registry.all,
    agentUser(folder) {
      const known = () => sql('SELECT uid FROM agent_users WHERE folder = ?').get(folder)?.uid
      if (known() === undefined) {
        sql(
          `INSERT INTO agent_users SELECT ?, 1 + coalesce(max(uid),
           (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_agent_user')) FROM agent_users`,
        ).run(folder)
      }
      return Number(known())
    },
    agentFolders: () =>
      sql('SELECT folder FROM agent_users ORDER BY folder')
        .all()
        .map(({ folder }) => String(folder)),
  }
  const within: GroupTransaction = {
    group: registry.byFolder,
    groups: registry.all,
    isFolderTaken: registry.isTaken,
    groupByJid: registry.byJid,
    insertGroup(group) {
      sql(groupTable.insert).run(...groupTable.values(group))
      registry.add(group)
    },
    updateGroup(group) {
      sql('UPDATE groups SET jid = ?, name = ? WHERE folder = ?').run(group.jid, group.name, group.folder)
      const { last_activity = null } = registry.byFolder(group.folder) ?? {}
      registry.remove(group.folder)
      registry.add({ ...group, last_activity })
    },
    noteActivity(jid, at) {
      const group = registry.byJid(jid)
      const before = group?.last_activity ?? undefined
      if (!group || (before !== undefined && at - Date.parse(before) < activeAgainMs)) return
      sql('UPDATE groups SET last_activity = ? WHERE folder = ?').run(at, group.folder)
      registry.add({ ...group, last_activity: isoOf(at) })
    },
  }
  const forgetGroup = (folder: string) => {
    sql('DELETE FROM groups WHERE folder = ?').run(folder)
    registry.remove(folder)
  }
  return { store, within, forgetGroup }
}
