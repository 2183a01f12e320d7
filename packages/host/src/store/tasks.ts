import { type Task, taskSchema } from '@hatchway/protocol'
import { type Connection, type Size, sizeIn, where } from './connection.ts'
import type { Meta } from './meta.ts'
import { tableOf } from './table.ts'

export const taskTable = tableOf('tasks', taskSchema)

/** Inside one transaction. */
export interface TaskTransaction {
  task(id: string): Task | undefined
  /** not cancelled, not completed; all groups' where no folder is given */
  openTasks(folder?: string): readonly Task[]
  openTaskSize(folder: string): Size
  /** a fresh id made of digits, as one dialect can only name tasks by number */
  newTaskId(): string
  insertTask(task: Task): void
  updateTask(task: Task): void
}

export interface TaskStore {
  tasks(filter: { group?: string; open?: boolean }): readonly Task[]
  /** open ones, of each group that has any */
  countOpenTasks(): readonly { group: string; count: number }[]
  /** open ones of one group, the newest first, with the beginnings of their texts */
  briefTasks(folder: string, limit: number): readonly Task[]
  /** open ones */
  countTasks(): { active: number; paused: number }
}

/** Spelled out, as SQLite uses a partial index only where a query says literally what the index says. */
const open = "status IN ('active', 'paused')"
const bytes = 'octet_length(prompt) + coalesce(octet_length(script), 0) + coalesce(octet_length(job), 0)'
const isUnderWay =
  "EXISTS (SELECT 1 FROM occurrences WHERE task_id = tasks.id AND status IN ('claimed', 'running'))"

/** What others than the group itself are shown of a task's texts. */
const briefCharacters = 200
const brief = (column: string) =>
  `CASE WHEN octet_length(${column}) > ${briefCharacters} THEN substr(${column}, 1, ${briefCharacters})
   || ' … (cut; ' || octet_length(${column}) || ' bytes)' ELSE ${column} END AS ${column}`
const briefColumns = taskTable.columns.replace(/\b(prompt|script|last_result)\b/g, brief)

export function createTaskTable({ sql }: Connection, meta: Meta) {
  let counter = Number(meta.meta('task_counter') ?? 0)

  const select = ({ group, open: isOpen = false }: { group?: string | undefined; open?: boolean }) => {
    const { text, values } = where({ 'group_folder = ?': group, [open]: isOpen || undefined })
    return sql(`SELECT * FROM tasks ${text} ORDER BY created_at, rowid`)
      .all(...values)
      .map(taskTable.from)
  }

  const within: TaskTransaction = {
    task: id => taskTable.maybe(sql('SELECT * FROM tasks WHERE id = ?').get(id)),
    openTasks: group => select({ group, open: true }),
    openTaskSize: folder =>
      sizeIn(
        sql(
          `SELECT count(*) AS count, sum(${bytes}) AS bytes FROM tasks WHERE ${open} AND group_folder = ?`,
        ).get(folder),
      ),
    newTaskId() {
      do counter++
      while (sql('SELECT 1 FROM tasks WHERE id = ?').get(String(counter)) !== undefined)
      meta.setMeta('task_counter', String(counter))
      return String(counter)
    },
    insertTask: task => void sql(taskTable.insert).run(...taskTable.values(task)),
    updateTask({ id, ...change }) {
      const { text, values } = taskTable.set(change)
      sql(`UPDATE tasks SET ${text} WHERE id = ?`).run(...values, id)
    },
  }
  const store: TaskStore = {
    tasks: select,
    countOpenTasks: () =>
      sql(`SELECT group_folder, count(*) AS count FROM tasks WHERE ${open} GROUP BY group_folder`)
        .all()
        .map(row => ({ group: String(row.group_folder), count: Number(row.count) })),
    briefTasks: (folder, limit) =>
      sql(
        `SELECT ${briefColumns} FROM tasks WHERE rowid IN (SELECT rowid FROM tasks
         WHERE ${open} AND group_folder = ? ORDER BY rowid DESC LIMIT ?) ORDER BY rowid DESC`,
      )
        .all(folder, limit)
        .map(taskTable.from),
    countTasks() {
      const row = sql(
        `SELECT count(*) FILTER (WHERE status = 'active') AS active, count(*) FILTER (WHERE status = 'paused') AS paused
         FROM tasks WHERE ${open}`,
      ).get()
      return { active: Number(row?.active ?? 0), paused: Number(row?.paused ?? 0) }
    },
  }

  /** Forgets the oldest that are over beyond `keep`, and cuts long texts of the rest; whether there are more. */
  const prune = (keep: number, atATime: number): boolean => {
    const removed = sql(
      `DELETE FROM tasks WHERE rowid IN (SELECT rowid FROM tasks WHERE status NOT IN ('active', 'paused')
       ORDER BY coalesce(last_run, created_at) DESC, rowid DESC LIMIT ? OFFSET ?) AND NOT ${isUnderWay}`,
    ).run(atATime, keep).changes
    const cut = sql(
      `UPDATE tasks SET prompt = substr(prompt, 1, 1000) || ' … (cut)', script = NULL WHERE rowid IN
       (SELECT rowid FROM tasks WHERE status NOT IN ('active', 'paused')
        AND octet_length(prompt) + coalesce(octet_length(script), 0) > 4096 AND NOT ${isUnderWay} LIMIT ?)`,
    ).run(atATime).changes
    return [removed, cut].some(changes => Number(changes) === atATime)
  }
  return { store, within, prune }
}
