import type { InputContext, InputMessage, OutgoingFile } from '../dialect.ts'
import type { Todo } from '../services.ts'
import type { Group, OtherChat, Task } from '../snapshots.ts'

/** What the host writes in the shapes that several dialects share. */

export const json = (path: string, value: unknown): OutgoingFile => ({
  path,
  content: JSON.stringify(value, null, 2),
})

/** Main sees every group's tasks, the others their own. What was cancelled is history, and no longer shown. */
export const visibleTasks = (tasks: readonly Task[], viewer: Group): readonly Task[] =>
  tasks.filter(task => task.status !== 'cancelled' && (viewer.main || task.group === viewer.folder))

export const flatTask = (task: Task) => ({
  id: task.id,
  groupFolder: task.group,
  prompt: task.prompt,
  ...(task.script === null ? {} : { script: task.script }),
  schedule_type: task.schedule_type,
  schedule_value: task.schedule_value,
  status: task.status,
  next_run: task.next_run,
  ...(task.model === null ? {} : { model: task.model }),
})

export const flatTasks = (tasks: readonly Task[], viewer: Group): OutgoingFile =>
  json('current_tasks.json', visibleTasks(tasks, viewer).map(flatTask))

export const flatGroups = (
  groups: readonly Group[],
  viewer: Group,
  syncedAt: string,
  others: readonly OtherChat[] = [],
): OutgoingFile =>
  json('available_groups.json', {
    groups: viewer.main
      ? [
          ...groups.map(({ jid, name, last_activity, added_at }) => ({
            jid,
            name,
            // its readers sort by this and expect text: a group in which nothing was said yet became active when added
            lastActivity: last_activity ?? added_at,
            isRegistered: true,
          })),
          ...others.map(({ jid, name, last_activity }) => ({
            jid,
            name,
            // Nothing that is known of: its readers take text for a time, and put this one last.
            lastActivity: last_activity ?? new Date(0).toISOString(),
            isRegistered: false,
          })),
        ]
      : [],
    lastSync: syncedAt,
  })

/** A message for the running session, in the words of its project. */
export const flatInput =
  (prompt: (messages: readonly InputMessage[], context: InputContext) => string) =>
  (message: InputMessage, name: string, context: InputContext): OutgoingFile =>
    json(`input/${name}.json`, { type: 'message', text: prompt([message], context) })

export const todosFile = (todos: readonly Todo[]): OutgoingFile => json('todos.json', todos)

export const closeSentinel = (): OutgoingFile => ({ path: 'input/_close', content: '' })
