import type { Taint } from '../base/taint.ts'
import { type Connection, where } from './connection.ts'
import { folderContext, type Texts, textKey } from './contexts.ts'
import { type TaintRow, taintRowSchema } from './entities/taint.ts'
import { tableOf } from './table.ts'

const taintTable = tableOf('taints', taintRowSchema)
const taintOf = (row: TaintRow | undefined): Taint => ({
  corrupted: (row?.corruptedAt ?? null) !== null,
  secret: (row?.secretAt ?? null) !== null,
})

/** Inside one transaction. The database compares groups without case: their folders may be the same files. */
export interface TaintTransaction {
  taint(group: string, context: string): Taint
  /** of names, tasks and their results: of one group, or of all */
  texts(group: string | undefined): Texts
  /** adds to it; what is there already stays, with its reason */
  addTaint(group: string, context: string, taint: Taint, by: string, at: number): void
}

export interface TaintStore {
  all(): readonly TaintRow[]
  /** the context is gone; whether it was tainted */
  clear(group: string, context: string): boolean
  add: TaintTransaction['addTaint']
  of: TaintTransaction['taint']
  texts: TaintTransaction['texts']
  /** what one context has seen, the files of the group `to` hold from now on */
  join(from: { group: string; context: string }, to: string): void
}

export interface TaintTable {
  store: TaintStore
  within: TaintTransaction
}

/** What is there already stays, with its reason. */
const adding = `ON CONFLICT DO UPDATE SET
  corrupted_at = coalesce(corrupted_at, excluded.corrupted_at),
  corrupted_by = coalesce(corrupted_by, excluded.corrupted_by),
  secret_at = coalesce(secret_at, excluded.secret_at),
  secret_by = coalesce(secret_by, excluded.secret_by)`

export function createTaintTable({ sql }: Connection): TaintTable {
  const addTaint: TaintTransaction['addTaint'] = (group, context, { corrupted, secret }, by, at) => {
    if (!corrupted && !secret) return
    sql(`${taintTable.insert} ${adding}`).run(
      ...taintTable.values({
        group,
        context,
        corruptedBy: corrupted ? by : null,
        corruptedAt: corrupted ? at : null,
        secretBy: secret ? by : null,
        secretAt: secret ? at : null,
      }),
    )
  }
  const taint: TaintTransaction['taint'] = (group, context) =>
    taintOf(
      taintTable.maybe(
        sql('SELECT * FROM taints WHERE group_folder = ? AND context = ?').get(group, context),
      ),
    )
  const texts: TaintTransaction['texts'] = group => {
    const { text, values } = where({
      'group_folder = ?': group,
      "(context IN ('name', 'title') OR context LIKE 'task:%' OR context LIKE 'result:%')": true,
    })
    const rows = sql(`SELECT * FROM taints ${text}`)
      .all(...values)
      .map(taintTable.from)
    return new Map(rows.map(row => [textKey(row.group, row.context), taintOf(row)]))
  }
  return {
    store: {
      of: taint,
      texts,
      all: () => sql('SELECT * FROM taints ORDER BY group_folder, context').all().map(taintTable.from),
      clear: (group, context) =>
        sql('DELETE FROM taints WHERE group_folder = ? AND context = ?').run(group, context).changes > 0,
      add: addTaint,
      join: ({ group, context }, to) =>
        void sql(
          `INSERT INTO taints SELECT ?, ?, corrupted_at, corrupted_by, secret_at, secret_by
           FROM taints WHERE group_folder = ? AND context = ? ${adding}`,
        ).run(to, folderContext, group, context),
    },
    within: {
      taint,
      texts,
      addTaint,
    },
  }
}
