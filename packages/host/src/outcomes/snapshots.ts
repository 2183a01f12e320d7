import { dialects, type Group, type OtherChat, type Task } from '@hatchway/protocol'
import type { Fault } from '../base/fault.ts'
import type { Effect } from '../commands/effects.ts'
import type { View } from '../guard/withheld.ts'
import { isoOf } from '../store/entities/instant.ts'
import type { Store } from '../store/types.ts'
import { createBriefTasks } from './brief-tasks.ts'
import { createSnapshotFile, type SnapshotFileOptions } from './snapshot-file.ts'

/**
 * What each group sees of the host's state: `current_tasks.json`, `available_groups.json` and `todos.json`, in its
 * dialect and filtered by its privilege, replaced as a whole. (service-listings.ts writes `services.json`.)
 *
 * A change marks the groups whose view it alters. They are written at once when nothing else is waiting, so that an
 * agent that has its answer also finds it in the snapshot; while commands keep coming, at most every `pauseMs` (or
 * four times as long as the last writing took), so that a thousand changes cost a few writings.
 */
export interface Snapshots {
  /** marks what shows this; false: nothing does */
  changed(effect: Effect): boolean
  /** every group, bit by bit: what is on disk already is left as it is. In no hurry: a few each second */
  everything(inHurry: boolean): void
  /** calls back once everything marked so far is written */
  whenWritten(callback: () => void): void
  /** writes now what is marked, unless more is coming and the pause is not over */
  settle(moreIsComing: boolean): void
  flush(): void
  stop(): void
}

const pauseMs = 25
/** Whoever posts a file meanwhile should not notice. */
const sliceMs = 1
const leisurelyMs = 1000

export interface SnapshotsOptions extends SnapshotFileOptions {
  store: Store
  fault: Fault
  now(): Date
  /** what a group's agent is shown of tasks and groups; left out: everything */
  view?(reader: Group): Pick<View, 'task' | 'group' | 'chat'>
}

export function createSnapshots(options: SnapshotsOptions): Snapshots {
  const { store, fault, now } = options
  const briefTasks = createBriefTasks(store)
  /** the folders whose file has to be written */
  const marked = { tasks: new Set<string>(), groups: new Set<string>(), todos: new Set<string>() }
  const isNothingMarked = () => Object.values(marked).every(({ size }) => size === 0)
  let callbacks: (() => void)[] = []
  let last = { at: 0, tookMs: 0 }
  let timer: NodeJS.Timeout | undefined
  let groupsChangedAt = now().toISOString()
  /** Only main sees others. Whoever sees none has seen none from the beginning, and keeps the same file for ever. */
  const syncedAt = (viewer: Group) => (viewer.main ? groupsChangedAt : viewer.added_at)

  const writeTasks = createSnapshotFile(
    'current_tasks.json',
    group => {
      const own = store.tasks({ open: true, group: group.folder })
      const all = group.main ? inOrder([...own, ...briefTasks.exceptOf(group.folder)]) : own
      const view = options.view?.(group)
      return dialects[group.dialect].tasks(view ? all.map(view.task) : all, group)
    },
    options,
  )
  const writeGroups = createSnapshotFile(
    'available_groups.json',
    group => {
      // Only main sees others.
      const view = group.main ? options.view?.(group) : undefined
      const shown = view ? store.groups().map(view.group) : store.groups()
      const others = group.main ? otherChats(store).map(chat => view?.chat(chat) ?? chat) : []
      return dialects[group.dialect].groups(shown, group, syncedAt(group), others)
    },
    options,
  )
  const writeTodos = createSnapshotFile(
    'todos.json',
    group => {
      const { todos } = dialects[group.dialect]
      const all = store.todos(group.folder)
      if (!todos) return 'unchanged'
      // A group that never had any needs no file that says so.
      return all.length === 0 ? undefined : todos(all)
    },
    options,
  )

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (!isNothingMarked()) {
      const begin = performance.now()
      fault('snapshots')
      for (const group of store.groups()) {
        if (marked.tasks.has(group.folder)) writeTasks(group)
        if (marked.groups.has(group.folder)) writeGroups(group)
        if (marked.todos.has(group.folder)) writeTodos(group)
      }
      for (const folders of Object.values(marked)) folders.clear()
      const at = performance.now()
      last = { at, tookMs: at - begin }
    }
    const ready = callbacks
    callbacks = []
    for (const callback of ready) callback()
  }

  const mark = (folders: Set<string>, folder?: string) => {
    if (folder !== undefined) folders.add(folder)
    for (const group of store.groups()) if (group.main) folders.add(group.folder)
  }
  const tasksChanged = (folder: string) => {
    briefTasks.changed(folder)
    mark(marked.tasks, folder)
  }
  const sweep = createSweep(store, group => {
    writeTasks(group)
    writeGroups(group)
  })

  return {
    changed(effect) {
      switch (effect.kind) {
        case 'tasks_changed':
          tasksChanged(effect.folder)
          return true
        case 'todos_changed':
          marked.todos.add(effect.folder)
          return true
        case 'groups_changed':
          groupsChangedAt = now().toISOString()
          mark(marked.groups)
          return true
        case 'group_added':
          // It has none of the files yet, or those of whoever had the folder before.
          tasksChanged(effect.folder)
          marked.groups.add(effect.folder)
          marked.todos.add(effect.folder)
          return true
        default:
          return false
      }
    },
    everything: sweep.start,
    whenWritten: callback => void callbacks.push(callback),
    settle(moreIsComing) {
      if (isNothingMarked() && callbacks.length === 0) return
      const pause = Math.max(pauseMs, last.tookMs * 4)
      const left = last.at + pause - performance.now()
      if (!moreIsComing || left <= 0) return flush()
      timer ??= setTimeout(flush, left)
    },
    flush,
    stop() {
      flush()
      sweep.stop()
    },
  }
}

/** Looks at every group once, so little at a time that nobody notices. */
function createSweep(store: Pick<Store, 'group' | 'groups'>, refresh: (group: Group) => void) {
  let rest: string[] = []
  let timer: NodeJS.Timeout | undefined

  const next = (inHurry: boolean) => {
    const until = performance.now() + sliceMs
    do {
      const group = store.group(rest.pop() ?? '')
      if (group) refresh(group)
    } while (rest.length > 0 && performance.now() < until)
    if (rest.length > 0) schedule(inHurry)
  }
  const schedule = (inHurry: boolean) => {
    if (inHurry) setImmediate(next, true)
    else timer = setTimeout(next, leisurelyMs, false)
  }
  return {
    start(inHurry: boolean) {
      rest = store.groups().map(group => group.folder)
      schedule(inHurry)
    },
    stop() {
      rest = []
      clearTimeout(timer)
    },
  }
}

/** As they were made. The store writes all instants in one form, so that their texts can be compared. */
const inOrder = (tasks: readonly Task[]): Task[] =>
  tasks.toSorted((a, b) => (a.created_at === b.created_at ? 0 : a.created_at < b.created_at ? -1 : 1))

const otherChatsShown = 500

/** Chats that channels know and that are no group's, the latest active first. */
function otherChats(store: Pick<Store, 'groups' | 'chats'>): OtherChat[] {
  const registered = new Set(store.groups().map(({ jid }) => jid))
  return store.chats
    .allKnown()
    .filter(({ jid }) => !registered.has(jid))
    .slice(0, otherChatsShown)
    .map(({ jid, name, lastActivity }) => ({
      jid,
      name,
      last_activity: lastActivity === 0 ? null : isoOf(lastActivity),
    }))
}
