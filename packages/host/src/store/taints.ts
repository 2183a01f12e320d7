import type { Taint } from '../base/taint.ts'
import type { Connection } from './connection.ts'
import { folderContext, type Texts, textKey } from './contexts.ts'

/** Why a context is tainted: what it read first, and when. */
export interface TaintRow {
  /** its folder, or what stands for it: a repository that several groups read */
  group: string
  context: string
  corruptedBy: string | null
  corruptedAt: number | null
  secretBy: string | null
  secretAt: number | null
}

/** Inside one transaction. */
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
    sql(`INSERT INTO taints VALUES (?, ?, ?, ?, ?, ?) ${adding}`).run(
      group,
      context,
      corrupted ? at : null,
      corrupted ? by : null,
      secret ? at : null,
      secret ? by : null,
    )
  }
  const taint: TaintTransaction['taint'] = (group, context) => {
    const row = sql('SELECT corrupted_at, secret_at FROM taints WHERE group_folder = ? AND context = ?').get(
      group,
      context,
    )
    return {
      corrupted: row !== undefined && row.corrupted_at !== null,
      secret: row !== undefined && row.secret_at !== null,
    }
  }
  const texts: TaintTransaction['texts'] = group => {
    const isText = "(context = 'name' OR context LIKE 'task:%' OR context LIKE 'result:%')"
    const rows =
      group === undefined
        ? sql(`SELECT * FROM taints WHERE ${isText}`).all()
        : sql(`SELECT * FROM taints WHERE group_folder = ? AND ${isText}`).all(group)
    return new Map(
      rows.map(row => [
        textKey(String(row.group_folder), String(row.context)),
        { corrupted: row.corrupted_at !== null, secret: row.secret_at !== null },
      ]),
    )
  }
  return {
    store: {
      of: taint,
      texts,
      all: () =>
        sql('SELECT * FROM taints ORDER BY group_folder, context')
          .all()
          .map(row => ({
            group: String(row.group_folder),
            context: String(row.context),
            corruptedBy: row.corrupted_by === null ? null : String(row.corrupted_by),
            corruptedAt: row.corrupted_at === null ? null : Number(row.corrupted_at),
            secretBy: row.secret_by === null ? null : String(row.secret_by),
            secretAt: row.secret_at === null ? null : Number(row.secret_at),
          })),
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
