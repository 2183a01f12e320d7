import type { Task } from '@hatchway/protocol'
import type { Store } from '../store/types.ts'

/**
 * What the main group sees of the others' tasks: of each its beginning, and not more than so many, whatever the groups
 * have. They are kept from one time to the next, so that a change in one group costs nobody the reading of another's.
 */
export interface BriefTasks {
  /** all open tasks but those of this group */
  exceptOf(folder: string): readonly Task[]
  /** the tasks of this group are to be read again */
  changed(folder: string): void
}

/** so many tasks are shown, in about a megabyte */
const mostTasks = 2000

export function createBriefTasks(
  store: Pick<Store, 'countOpenTasks' | 'briefTasks'>,
  most = mostTasks,
): BriefTasks {
  const known = new Map<string, readonly Task[]>()

  const tasksOf = (group: string, wanted: number) => {
    const kept = known.get(group)
    if (kept && kept.length >= wanted) return kept.slice(0, wanted)
    const tasks = store.briefTasks(group, wanted)
    known.set(group, tasks)
    return tasks
  }

  return {
    exceptOf(folder) {
      const others = store.countOpenTasks().filter(({ group }) => group !== folder)
      const total = others.reduce((sum, { count }) => sum + count, 0)
      // Each group has the same share, so that nobody's tasks hide another's.
      const share = total <= most ? most : Math.max(1, Math.floor(most / others.length))
      return others.slice(0, most).flatMap(({ group, count }) => tasksOf(group, Math.min(count, share)))
    },
    changed: folder => void known.delete(folder),
  }
}
