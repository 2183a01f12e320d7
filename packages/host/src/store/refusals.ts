import type { ErrorCode } from '@hatchway/protocol'
import type { Connection } from './connection.ts'

/** A command that was refused without an answer: the file had no request id. */
export interface UntoldRefusal {
  /** of the command */
  seq: number
  group: string
  /** as the file named it; null: nobody knows */
  type: string | null
  code: ErrorCode
  message: string
}

export interface RefusalTransaction {
  addRefusal(refusal: UntoldRefusal): void
}

export interface RefusalTable {
  within: RefusalTransaction
  /** the newest, oldest first, and how many there are before them; all of them count as told */
  take(group: string, limit: number): { refusals: readonly UntoldRefusal[]; earlier: number }
  forgetGroup(folder: string): void
}

/** An agent that is never woken again must not fill the store with what it is never told. */
const kept = 50

export function createRefusalTable({ sql, atomically }: Connection): RefusalTable {
  const forgetGroup = (folder: string) => void sql('DELETE FROM refusals WHERE group_folder = ?').run(folder)
  return {
    within: {
      addRefusal({ seq, group, type, code, message }) {
        sql('INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?, ?)').run(group, seq, type, code, message)
        sql(
          `DELETE FROM refusals WHERE group_folder = ? AND seq <= (SELECT seq FROM refusals
           WHERE group_folder = ? ORDER BY seq DESC LIMIT 1 OFFSET ${kept})`,
        ).run(group, group)
      },
    },
    take: (group, limit) =>
      atomically(() => {
        const rows = sql('SELECT * FROM refusals WHERE group_folder = ? ORDER BY seq').all(group)
        if (rows.length > 0) forgetGroup(group)
        const refusals = rows.slice(-limit).map(row => ({
          seq: Number(row.seq),
          group,
          type: row.type === null ? null : String(row.type),
          code: String(row.code) as ErrorCode,
          message: String(row.message),
        }))
        return { refusals, earlier: rows.length - refusals.length }
      }),
    forgetGroup,
  }
}
