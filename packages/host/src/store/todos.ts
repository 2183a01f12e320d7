import { type Todo, todoSchema } from '@hatchway/protocol'
import type { Connection } from './connection.ts'
import type { Row } from './rows.ts'
import type { ServiceTransaction } from './service-types.ts'

export interface TodoTable {
  within: Pick<ServiceTransaction, 'todos' | 'insertTodo' | 'updateTodo'>
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
          .map(todoFromRow),
      insertTodo: (folder, todo) =>
        void sql('INSERT INTO todos VALUES (?, ?, ?, ?, ?, NULL)').run(
          folder,
          todo.id,
          todo.content,
          Number(todo.done),
          Date.parse(todo.created_at),
        ),
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

const todoFromRow = (row: Row): Todo =>
  todoSchema.parse({
    id: row.id,
    content: row.content,
    done: row.done === 1,
    created_at: new Date(Number(row.created_at)).toISOString(),
  })
