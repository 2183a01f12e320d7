import type { Task } from '@hatchway/protocol'
import { authorise } from '../../commands/registry.ts'
import { scheduleTask } from '../../commands/tasks.ts'
import type { Store } from '../../store/types.ts'

/**
 * Why a task may not run now, if so. It has the rights that whoever answers for it has at this moment, by
 * the same table that decided when it was scheduled.
 */
export function rightsOf(store: Pick<Store, 'group'>): (task: Task) => string | undefined {
  return task => {
    if (!store.group(task.group)) return 'The group it runs in is not registered any more.'
    const creator = store.group(task.created_by)
    if (!creator) return 'The group that answers for it is not registered any more.'
    const refused = authorise(scheduleTask, { kind: 'group', group: creator }, { folder: task.group })
    return refused && 'The group that answers for it may not run tasks in this group any more.'
  }
}
