import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { dialects, type Group, type OutgoingFile, type Services, type Task } from '@hatchway/protocol'
import { openDirectory, post } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Layout } from '../base/layout.ts'
import type { Retries } from '../base/retry.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { View } from '../guard/withheld.ts'
import type { Store } from '../store/types.ts'
import { createBriefTasks } from './brief-tasks.ts'

/**
 * What each group sees of the host's state: `current_tasks.json`, `available_groups.json`, `todos.json` and
 * `services.json`, in its dialect and
 * filtered by its privilege, replaced as a whole.
 *
 * A change marks the groups whose view it alters. They are written at once when nothing else is waiting, so that an
 * agent that has its answer also finds it in the snapshot; while commands keep coming, at most every `pauseMs` (or
 * four times as long as the last writing took), so that a thousand changes cost a few writings.
 */
export interface Snapshots {
  tasksChanged(folder: string): void
  groupsChanged(): void
  todosChanged(folder: string): void
  /** what agents may ask services for, known by its digest; where that is another it is written, bit by bit */
  servicesAre(digest: string): void
  /** writes what one group may ask for, if it is not there */
  showServices(folder: string): void
  /** a group that is new here has neither of the two yet, or those of whoever had the folder before */
  groupAdded(folder: string): void
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

export function createSnapshots(options: {
  layout: Layout
  store: Store
  log: Logger
  retries: Pick<Retries, 'inBackground'>
  fault: Fault
  now(): Date
  /** what a group's agent is shown of tasks and groups; left out: everything */
  view?(reader: Group): Pick<View, 'task' | 'group'>
  /** left out: whoever opens the host for a moment has no services, and leaves what is written of them alone */
  services?(group: Group): Services | undefined
}): Snapshots {
  const { layout, store, log, retries, fault, now } = options
  const briefTasks = createBriefTasks(store)
  const tasks = new Set<string>()
  const todos = new Set<string>()
  const services = new Set<string>()
  const groups = new Set<string>()
  let background: string[] = []
  let callbacks: (() => void)[] = []
  let writtenAt = 0
  let cost = 0
  let timer: NodeJS.Timeout | undefined
  let slice: NodeJS.Timeout | undefined
  let servicesSlice: NodeJS.Immediate | undefined
  let digest = ''
  let hurry = true
  let groupsChangedAt = now().toISOString()
  /** Only main sees others. Whoever sees none has seen none from the beginning, and keeps the same file for ever. */
  const syncedAt = (viewer: Group) => (viewer.main ? groupsChangedAt : viewer.added_at)

  const put = (group: Group, name: string, file: OutgoingFile | undefined) => {
    const directory = join(layout.ipc, group.folder)
    if (!file) return remove(directory, name)
    if (isWritten(directory, file)) return
    post(directory, file.content, { name: file.path, staging: layout.staging, mode: 0o644 })
  }
  const putTasks = (group: Group) => {
    const own = store.tasks({ open: true, group: group.folder })
    const all = group.main ? inOrder([...own, ...briefTasks.exceptOf(group.folder)]) : own
    const view = options.view?.(group)
    const shown = view ? all.map(view.task) : all
    put(group, 'current_tasks.json', dialects[group.dialect].tasks(shown, group))
  }
  const putGroups = (group: Group) => {
    // Only main sees others.
    const view = group.main ? options.view?.(group) : undefined
    const shown = view ? store.groups().map(view.group) : store.groups()
    put(group, 'available_groups.json', dialects[group.dialect].groups(shown, group, syncedAt(group)))
  }
  const putTodos = (group: Group) => {
    const { todos } = dialects[group.dialect]
    const all = store.todos(group.folder)
    // A group that never had any needs no file that says so.
    if (todos) put(group, 'todos.json', all.length === 0 ? undefined : todos(all))
  }
  const putServices = (group: Group) => {
    const listing = dialects[group.dialect].services
    const known = listing && options.services?.(group)
    if (known) put(group, 'services.json', listing(known))
  }

  /** What one group's directory does not let be written is nobody else's trouble; what the disk does not is tried again. */
  const writing = (file: string, write: (group: Group) => void) => {
    const again = new Set<string>()
    return (group: Group) => {
      const { folder } = group
      try {
        write(group)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (!isStorageFailure(error)) {
          log.warn({ group: folder, file, reason }, 'a snapshot could not be written')
        } else if (!again.has(folder)) {
          again.add(folder)
          retries.inBackground('writing a snapshot', () => {
            const current = store.group(folder)
            if (current) write(current)
            again.delete(folder)
          })
        }
      }
    }
  }
  const writeTasks = writing('current_tasks.json', putTasks)
  const writeGroups = writing('available_groups.json', putGroups)
  const writeTodos = writing('todos.json', putTodos)
  const writeServices = writing('services.json', putServices)
  const writeSomeServices = () => {
    const until = performance.now() + sliceMs
    for (const folder of services) {
      services.delete(folder)
      const group = store.group(folder)
      if (group) writeServices(group)
      if (performance.now() >= until) break
    }
    servicesSlice = services.size > 0 ? setImmediate(writeSomeServices) : undefined
    if (!servicesSlice)
      retries.inBackground('noting the services that groups see', () => store.setMeta('services', digest))
  }

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (tasks.size > 0 || groups.size > 0 || todos.size > 0) {
      const begin = performance.now()
      fault('snapshots')
      for (const group of store.groups()) {
        if (tasks.has(group.folder)) writeTasks(group)
        if (groups.has(group.folder)) writeGroups(group)
        if (todos.has(group.folder)) writeTodos(group)
      }
      tasks.clear()
      groups.clear()
      todos.clear()
      writtenAt = performance.now()
      cost = writtenAt - begin
    }
    const ready = callbacks
    callbacks = []
    for (const callback of ready) callback()
  }

  const settle = (moreIsComing: boolean) => {
    const isNothing = tasks.size === 0 && groups.size === 0 && todos.size === 0 && callbacks.length === 0
    if (isNothing) return
    const pause = Math.max(pauseMs, cost * 4)
    const left = writtenAt + pause - performance.now()
    if (!moreIsComing || left <= 0) return flush()
    timer ??= setTimeout(flush, left)
  }

  const scheduleSlice = () => {
    if (hurry) setImmediate(nextSlice)
    else slice = setTimeout(nextSlice, leisurelyMs)
  }

  const nextSlice = () => {
    const until = performance.now() + sliceMs
    do {
      const group = store.group(background.pop() ?? '')
      if (group) {
        writeTasks(group)
        writeGroups(group)
      }
    } while (background.length > 0 && performance.now() < until)
    if (background.length > 0) scheduleSlice()
  }

  const tasksChanged = (folder: string) => {
    briefTasks.changed(folder)
    tasks.add(folder)
    for (const group of store.groups()) if (group.main) tasks.add(group.folder)
  }

  return {
    tasksChanged,
    todosChanged: folder => void todos.add(folder),
    servicesAre(now) {
      // With thousands of groups it takes a second to look at all their files, at every start for nothing.
      if (digest === now || (digest === '' && store.meta('services') === now)) {
        digest = now
        return
      }
      digest = now
      retries.inBackground('noting the services that groups see', () => store.setMeta('services', ''))
      for (const { folder } of store.groups()) services.add(folder)
      servicesSlice ??= setImmediate(writeSomeServices)
    },
    showServices(folder) {
      const group = store.group(folder)
      if (group) writeServices(group)
    },
    groupAdded(folder) {
      tasksChanged(folder)
      groups.add(folder)
      todos.add(folder)
      const group = store.group(folder)
      if (group) writeServices(group)
    },
    groupsChanged() {
      groupsChangedAt = now().toISOString()
      for (const group of store.groups()) if (group.main) groups.add(group.folder)
    },
    everything(inHurry) {
      hurry = inHurry
      background = store.groups().map(group => group.folder)
      scheduleSlice()
    },
    whenWritten: callback => void callbacks.push(callback),
    settle,
    flush,
    stop() {
      flush()
      background = []
      clearTimeout(slice)
      clearImmediate(servicesSlice)
    },
  }
}

/** As they were made. The store writes all instants in one form, so that their texts can be compared. */
const inOrder = (tasks: readonly Task[]): Task[] =>
  tasks.toSorted((a, b) => (a.created_at === b.created_at ? 0 : a.created_at < b.created_at ? -1 : 1))

/** A dialect that has no such file for this group: what lies there was meant for somebody else's eyes. */
function remove(directory: string, name: string): void {
  const pinned = openDirectory(directory)
  if (typeof pinned === 'string') return
  try {
    const path = `${pinned.path}/${name}`
    if (lstatSync(path, { throwIfNoEntry: false })) unlinkSync(path)
  } finally {
    pinned.close()
  }
}

/** Whether the file is there already, word for word. A link, or anything that is no plain file, is not it. */
function isWritten(directory: string, file: OutgoingFile): boolean {
  const pinned = openDirectory(directory)
  if (typeof pinned === 'string') return false
  try {
    const path = `${pinned.path}/${file.path}`
    const about = lstatSync(path, { throwIfNoEntry: false })
    const size = Buffer.byteLength(file.content)
    if (!about?.isFile() || about.size !== size) return false
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      // Its owner may have exchanged it in between: no more is read than it should hold.
      const bytes = Buffer.allocUnsafe(size + 1)
      if (!fstatSync(fd).isFile() || readSync(fd, bytes, 0, size + 1, 0) !== size) return false
      return bytes.toString('utf8', 0, size) === file.content
    } finally {
      closeSync(fd)
    }
  } finally {
    pinned.close()
  }
}
