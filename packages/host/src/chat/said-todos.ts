import type { Group } from '@hatchway/protocol'
import { newTodo } from '../services/todos.ts'
import type { Positions } from '../store/positions.ts'
import { hostMessage } from '../store/text-message.ts'
import type { NewIncoming, Store } from '../store/types.ts'

/** What a person wants on the list: `todo buy milk`. Undefined: it is about something else. */
const todoIn = (text: string): string | undefined => /^to-?do\b\s*:?\s*(\S.*)$/is.exec(text.trim())?.[1]

/** People put something on their group's list by saying so; the message, the entry and the word about it are one commit. */
export function createSaidTodos(options: {
  store: Pick<Store, 'todos' | 'noteTodo'>
  positions: Positions
  limit: number
  now(): number
  /** a list is another, and there is something to deliver */
  changed(folder: string): void
}) {
  const { store, positions, limit, now } = options
  return (group: Group, words: string): ((said: NewIncoming) => number | undefined) | undefined => {
    const content = todoIn(words)
    if (content === undefined) return undefined
    return said => {
      const made = newTodo(content, store.todos(group.folder), limit, new Date(now()))
      const [todo, text] =
        'ok' in made ? [undefined, made.error.message] : [made, `On the list: ${made.content}`]
      const id = store.noteTodo(said, todo, hostMessage(positions.next(), group, text, now()))
      if (id !== undefined) options.changed(group.folder)
      return id
    }
  }
}
