import type { Connection } from './connection.ts'

/** An agent that was made together with the task that wakes it. */
interface PeriodicAgent {
  name: string
  group: string
  taskId: string
}

/** Inside one transaction. */
export interface PeriodicTransaction {
  /** names are compared without case */
  periodicAgent(name: string): PeriodicAgent | undefined
  insertPeriodicAgent(agent: PeriodicAgent): void
}

export interface PeriodicTable {
  within: PeriodicTransaction
  forgetGroup(folder: string): void
}

export function createPeriodicTable({ sql }: Connection): PeriodicTable {
  return {
    within: {
      periodicAgent(name) {
        const row = sql('SELECT * FROM periodic_agents WHERE name = ?').get(name)
        return row && { name: String(row.name), group: String(row.group_folder), taskId: String(row.task_id) }
      },
      insertPeriodicAgent: ({ name, group, taskId }) =>
        void sql(
          `INSERT INTO periodic_agents VALUES (?, ?, ?)
           ON CONFLICT (name) DO UPDATE SET group_folder = excluded.group_folder, task_id = excluded.task_id`,
        ).run(name, group, taskId),
    },
    forgetGroup: folder => void sql('DELETE FROM periodic_agents WHERE group_folder = ?').run(folder),
  }
}
