import { randomBytes } from 'node:crypto'
import type { Outcome, Todo } from '@hatchway/protocol'
import { todoSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { done, type Refused, refused } from '../base/outcome.ts'
import type { InstantContext, InstantTool, Service } from '../commands/service-tools.ts'
import { checkedBy, schemaOf } from './define.ts'

/**
 * A group's list of things to do. The host alone writes it, each change within one commit, so that people and agents
 * can both be at it and nothing is lost; `todos.json` shows it.
 */
const longestTodo = 2000

/** Another entry for the list, or why there cannot be one. */
export function newTodo(text: string, all: readonly Todo[], limit: number, now: Date): Todo | Refused {
  const content = text.trim().toWellFormed()
  if (content === '') return refused('invalid_field', 'content: must not be empty')
  if (content.length > longestTodo) {
    return refused('invalid_field', `content: must be at most ${longestTodo} characters`)
  }
  if (all.filter(todo => !todo.done).length >= limit) {
    return refused(
      'quota_exceeded',
      `There are ${limit} todos that are not done. Complete some of them first.`,
    )
  }
  const taken = new Set(all.map(({ id }) => id))
  let id: string
  do id = randomBytes(4).toString('hex')
  while (taken.has(id))
  return { id, content, done: false, created_at: now.toISOString() }
}

const add = (
  content: string,
  limit: number,
  { transaction, group, now, effect }: InstantContext,
): Outcome => {
  const todo = newTodo(content, transaction.todos(group.folder), limit, now)
  if ('ok' in todo) return todo
  transaction.insertTodo(group.folder, todo)
  effect({ kind: 'todos_changed', folder: group.folder })
  return done({ todo })
}

const complete = (id: string, { transaction, group, now, effect }: InstantContext): Outcome => {
  const todo = transaction.todos(group.folder).find(candidate => candidate.id === id)
  if (!todo) return refused('not_found', 'No todo has this id. List them, and use an id from there.')
  if (todo.done) return done({ todo })
  const completed = { ...todo, done: true }
  transaction.updateTodo(group.folder, completed, now.getTime())
  effect({ kind: 'todos_changed', folder: group.folder })
  return done({ todo: completed })
}

export function createTodoService({ limit }: { limit: number }): Service {
  const own = { service: 'todos', kind: 'instant', answers: 'facts', groups: 'all' } as const
  // They stay within the group, and are what whoever wrote them had read.
  const labels = {
    public_source: 'no',
    secret_data: 'no',
    public_sink: 'no',
    dangerous_writes: 'no',
  } as const
  const reads = { dataset: { name: 'todos', access: 'read' } } as const
  const writes = { dataset: { name: 'todos', access: 'write' } } as const
  const one = schemaOf(z.object({ todo: todoSchema }), 'output')
  const list = z.strictObject({
    include_done: z.boolean().default(false).describe('Whether those that are done are listed too.'),
  })
  const addition = z.strictObject({
    content: z.string().min(1).max(longestTodo).describe('What there is to do, in a few words.'),
  })
  const finish = z.strictObject({ todo_id: z.string().describe('The id that list_todos shows.') })
  const tools: InstantTool[] = [
    {
      ...own,
      ...reads,
      labels,
      name: 'list_todos',
      title: 'List todos',
      description: 'The things to do in this group: what people or you have put on its list.',
      inputSchema: schemaOf(list),
      outputSchema: schemaOf(z.object({ todos: z.array(todoSchema) }), 'output'),
      annotations: { readOnlyHint: true, openWorldHint: false },
      check: input => checkedBy(list, input),
      perform: (input, { transaction, group }) => {
        const { include_done } = list.parse(input)
        return done({ todos: transaction.todos(group.folder).filter(todo => include_done || !todo.done) })
      },
    },
    {
      ...own,
      ...writes,
      labels,
      name: 'add_todo',
      title: 'Add a todo',
      description: 'Puts something on this group’s list of things to do.',
      inputSchema: schemaOf(addition),
      outputSchema: one,
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: false,
      },
      check: input => checkedBy(addition, input),
      perform: (input, context) => add(addition.parse(input).content, limit, context),
    },
    {
      ...own,
      labels,
      name: 'complete_todo',
      title: 'Complete a todo',
      description: 'Marks something on this group’s list as done.',
      inputSchema: schemaOf(finish),
      outputSchema: one,
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      },
      check: input => checkedBy(finish, input),
      perform: (input, context) => complete(finish.parse(input).todo_id, context),
    },
  ]
  return { name: 'todos', tools: () => tools }
}
