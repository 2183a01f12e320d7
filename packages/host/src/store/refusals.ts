import type { Connection } from './connection.ts'
import { refusalSchema, type UntoldRefusal } from './entities/request.ts'
import { tableOf } from './table.ts'

const refusalTable = tableOf('refusals', refusalSchema)

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
      addRefusal(refusal) {
        sql(refusalTable.replace).run(...refusalTable.values(refusal))
        sql(
          `DELETE FROM refusals WHERE group_folder = ? AND seq <= (SELECT seq FROM refusals
           WHERE group_folder = ? ORDER BY seq DESC LIMIT 1 OFFSET ${kept})`,
        ).run(refusal.group, refusal.group)
      },
    },
    take: (group, limit) =>
      atomically(() => {
        const rows = sql('SELECT * FROM refusals WHERE group_folder = ? ORDER BY seq').all(group)
        if (rows.length > 0) forgetGroup(group)
        const refusals = rows.slice(-limit).map(refusalTable.from)
        return { refusals, earlier: rows.length - refusals.length }
      }),
    forgetGroup,
  }
}
