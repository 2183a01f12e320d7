import { z } from 'zod'
import type { Connection } from './connection.ts'
import type { FileRow, FileStore, FileTransaction } from './file-types.ts'
import { attachmentsIn, type Row } from './rows.ts'

export interface FileTable {
  store: FileStore
  within: FileTransaction
}

const unsaid = `direction = 'in' AND message IS NULL`
const undelivered = `direction = 'out' AND EXISTS
  (SELECT 1 FROM messages WHERE messages.id = files.message AND messages.status = 'pending')`

export function createFileTable({ sql, atomically }: Connection): FileTable {
  const insert = (file: FileRow) =>
    void sql('INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
      file.id,
      file.group,
      file.jid,
      file.direction,
      file.message,
      file.name,
      file.type,
      file.bytes,
      file.createdAt,
    )
  const total = (group: string) =>
    Number(sql('SELECT sum(bytes) AS bytes FROM files WHERE group_folder = ?').get(group)?.bytes ?? 0)

  /** Whoever reads the message is told that the file was not always missing. */
  const markGone = ({ id, direction, message }: FileRow) => {
    if (message === null) return
    const table = direction === 'out' ? 'messages' : 'incoming'
    const row = sql(`SELECT attachments FROM ${table} WHERE id = ?`).get(message)
    const attachments = row && attachmentsIn(row)
    if (!attachments) return
    const marked = attachments.map(each => (each.id === id ? { ...each, gone: true } : each))
    sql(`UPDATE ${table} SET attachments = ? WHERE id = ?`).run(JSON.stringify(marked), message)
  }

  return {
    within: { insertFile: insert },
    store: {
      file(id) {
        const row = sql('SELECT * FROM files WHERE id = ?').get(id)
        return row && fileFromRow(row)
      },
      insert: file => atomically(() => insert(file)),
      total,
      trim: (group, bytes) =>
        atomically(() => {
          const forgotten: string[] = []
          let left = total(group)
          if (left <= bytes) return forgotten
          const oldest = sql(
            `SELECT * FROM files WHERE group_folder = ? AND NOT (${unsaid}) AND NOT (${undelivered})
             ORDER BY created_at, id`,
          ).all(group)
          for (const file of oldest.map(fileFromRow)) {
            if (left <= bytes) break
            markGone(file)
            sql('DELETE FROM files WHERE id = ?').run(file.id)
            forgotten.push(file.id)
            left -= file.bytes
          }
          return forgotten
        }),
      prune: before =>
        atomically(
          () =>
            void sql(
              `DELETE FROM files WHERE (${unsaid} AND created_at < ?)
               OR (direction = 'out' AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.id = files.message))
               OR (direction = 'in' AND message IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM incoming WHERE incoming.id = files.message))`,
            ).run(before),
        ),
    },
  }
}

const fileSchema = z.object({
  id: z.string(),
  group: z.string(),
  jid: z.string(),
  direction: z.enum(['in', 'out']),
  message: z.number().nullable(),
  name: z.string(),
  type: z.string(),
  bytes: z.number(),
  createdAt: z.number(),
})

const fileFromRow = (row: Row): FileRow =>
  fileSchema.parse({ ...row, group: row.group_folder, createdAt: row.created_at })
