import type { Connection } from './connection.ts'
import { attachmentsSchema, type FileRow, fileSchema } from './entities/file.ts'
import { parsed, tableOf } from './table.ts'

const fileTable = tableOf('files', fileSchema)

/** Each call is durable, whole or not at all. */
export interface FileStore {
  file(id: string): FileRow | undefined
  insert(file: FileRow): void
  /** bytes of one group's files */
  total(group: string): number
  /**
   * Forgets a group's oldest files until the rest has so many bytes, and tells so in their messages. What is not
   * delivered or not said yet stays. Those that are forgotten.
   */
  trim(group: string, bytes: number): readonly FileRow[]
  /**
   * Forgets files whose message is forgotten, and those from before this time that nobody has said. Of those that were
   * left for agents it tells, because no sweep finds them in the groups' folders.
   */
  prune(before: { unsaid: number; left: number }): readonly FileRow[]
  remove(id: string): void
}

/** Inside one transaction. */
export interface FileTransaction {
  insertFile(file: FileRow): void
}

export interface FileTable {
  store: FileStore
  within: FileTransaction
}

const unsaid = `direction = 'in' AND message IS NULL`
/** for the group's agent alone, in its folder: no message has it, and the host no copy */
const left = `direction = 'out' AND message IS NULL`
const undelivered = `direction = 'out' AND EXISTS
  (SELECT 1 FROM messages WHERE messages.id = files.message AND messages.status = 'pending')`

export function createFileTable({ sql, atomically }: Connection): FileTable {
  const insert = (file: FileRow) => void sql(fileTable.insert).run(...fileTable.values(file))
  const total = (group: string) =>
    Number(sql('SELECT sum(bytes) AS bytes FROM files WHERE group_folder = ?').get(group)?.bytes ?? 0)

  /** Whoever reads the message is told that the file was not always missing. */
  const markGone = ({ id, direction, message }: FileRow) => {
    if (message === null) return
    const table = direction === 'out' ? 'messages' : 'incoming'
    const row = sql(`SELECT attachments FROM ${table} WHERE id = ?`).get(message)
    const attachments = attachmentsSchema.parse(parsed(row?.attachments) ?? undefined)
    if (!attachments) return
    const marked = attachments.map(each => (each.id === id ? { ...each, gone: true } : each))
    sql(`UPDATE ${table} SET attachments = ? WHERE id = ?`).run(JSON.stringify(marked), message)
  }

  return {
    within: { insertFile: insert },
    store: {
      file: id => fileTable.maybe(sql('SELECT * FROM files WHERE id = ?').get(id)),
      insert: file => atomically(() => insert(file)),
      total,
      trim: (group, bytes) =>
        atomically(() => {
          const forgotten: FileRow[] = []
          let taken = total(group)
          if (taken <= bytes) return forgotten
          const oldest = sql(
            `SELECT * FROM files WHERE group_folder = ? AND NOT (${unsaid}) AND NOT (${undelivered})
             ORDER BY created_at, id`,
          ).all(group)
          for (const file of oldest.map(fileTable.from)) {
            if (taken <= bytes) break
            markGone(file)
            sql('DELETE FROM files WHERE id = ?').run(file.id)
            forgotten.push(file)
            taken -= file.bytes
          }
          return forgotten
        }),
      prune: before =>
        atomically(() => {
          const old = sql(`SELECT * FROM files WHERE ${left} AND created_at < ?`).all(before.left)
          sql(
            `DELETE FROM files WHERE (${unsaid} AND created_at < ?)
             OR (${left} AND created_at < ?)
             OR (direction = 'out' AND message IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.id = files.message))
             OR (direction = 'in' AND message IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM incoming WHERE incoming.id = files.message))`,
          ).run(before.unsaid, before.left)
          return old.map(fileTable.from)
        }),
      remove: id => atomically(() => void sql('DELETE FROM files WHERE id = ?').run(id)),
    },
  }
}
