import type { Statement } from '../../store/plugin-tables.ts'

/** An agent that was made together with the task that wakes it. */
interface PeriodicAgent {
  name: string
  group: string
  taskId: string
}

export interface PeriodicTable {
  /** names are compared without case */
  find(name: string): PeriodicAgent | undefined
  save(agent: PeriodicAgent): void
  forgetGroup(folder: string): void
}

export function createPeriodicTable(sql: (text: string) => Statement): PeriodicTable {
  return {
    find(name) {
      const row = sql('SELECT name, group_folder, task_id FROM periodic_agents WHERE name = ?').get(name)
      return row && { name: String(row.name), group: String(row.group_folder), taskId: String(row.task_id) }
    },
    save: ({ name, group, taskId }) =>
      void sql(
        `INSERT INTO periodic_agents VALUES (?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET group_folder = excluded.group_folder, task_id = excluded.task_id`,
      ).run(name, group, taskId),
    forgetGroup: folder => void sql('DELETE FROM periodic_agents WHERE group_folder = ?').run(folder),
  }
}
