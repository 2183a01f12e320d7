import { type Todo, todoSchema } from '@hatchway/protocol'
import type { Connection } from './connection.ts'
import { tableOf } from './table.ts'

const todoTable = tableOf('todos', todoSchema)

/** Inside one transaction. */
export interface TodoTransaction {
  todos(folder: string): readonly Todo[]
  insertTodo(folder: string, todo: Todo): void
  updateTodo(folder: string, todo: Todo, doneAt: number | null): void
}

export interface TodoTable {
  within: TodoTransaction
  forgetGroup(folder: string): void
}

/** Done ones are kept for a look back, the newest of them. */
const doneKept = 100

export function createTodoTable({ sql }: Connection): TodoTable {
  return {
    within: {
      todos: folder =>
        sql('SELECT * FROM todos WHERE group_folder = ? ORDER BY created_at, rowid')
          .all(folder)
          .map(todoTable.from),
      insertTodo: (folder, todo) =>
        void sql(
          `INSERT INTO todos (group_folder, ${todoTable.columns}) VALUES (?, ${todoTable.places})`,
        ).run(folder, ...todoTable.values(todo)),
      updateTodo(folder, todo, doneAt) {
        sql('UPDATE todos SET content = ?, done = ?, done_at = ? WHERE group_folder = ? AND id = ?').run(
          todo.content,
          Number(todo.done),
          doneAt,
          folder,
          todo.id,
        )
        sql(
          `DELETE FROM todos WHERE group_folder = ?1 AND done = 1 AND rowid NOT IN
           (SELECT rowid FROM todos WHERE group_folder = ?1 AND done = 1 ORDER BY done_at DESC, rowid DESC LIMIT ?2)`,
        ).run(folder, doneKept)
      },
    },
    forgetGroup: folder => void sql('DELETE FROM todos WHERE group_folder = ?').run(folder),
  }
}
