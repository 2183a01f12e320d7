import { randomUUID } from 'node:crypto'
import { lstatSync, readdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Outcome } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Layout } from '../base/layout.ts'
import { done, refused } from '../base/outcome.ts'
import { removeTree } from '../base/remove-tree.ts'
import { carried, folderContext, folderKey, titleContext, wipedAt } from '../store/contexts.ts'
import type { Store } from '../store/types.ts'

/**
 * Makes a group clean: everything that its runs can write goes, and only then what the host knows of what they had
 * read. The directories are renamed, which is done at once, and removed afterwards. A crash in between leaves the
 * group tainted with empty directories; wiping it again finishes the work.
 */
export interface Wiper {
  wipe(folder: string): Promise<Outcome>
  /** no run of the group may begin */
  isWiping(folder: string): boolean
  /** removes what an earlier process had not removed any more */
  tidy(): void
}

export interface WiperOptions {
  layout: Layout
  store: Store
  /** ends an idle session of the group's agent and resolves when it is gone; false: the agent is at work */
  endSession(folder: string): Promise<boolean>
  /** whether the host still does something that the group has asked for */
  isBusy(folder: string): boolean
  /** whether it has a directory beside its own that it can write, which stays as it is */
  writesElsewhere(folder: string): boolean
  /** makes the directories of a registered group again, and what the host shows in them */
  renew(folder: string): void
  log: Logger
  fault: Fault
  now(): number
}

const wiped = '.wiped-'

export function createWiper(options: WiperOptions): Wiper {
  const { layout, store, log, fault, now } = options
  const wiping = new Set<string>()
  const parents = [layout.groups, layout.worktrees, layout.ipc]
  const namesIn = (parent: string) =>
    lstatSync(parent, { throwIfNoEntry: false }) ? readdirSync(parent) : []

  const remove = (path: string) =>
    void removeTree(path).catch(error =>
      log.error({ err: error, path }, 'a wiped directory could not be removed; remove it by hand'),
    )
  /** Within its parent, which no sandbox can write. A link in its place is moved, not followed. */
  const moveAway = (path: string): string | undefined => {
    if (!lstatSync(path, { throwIfNoEntry: false })) return undefined
    const to = join(dirname(path), `${wiped}${randomUUID()}`)
    renameSync(path, to)
    return to
  }

  const wipe = async (given: string): Promise<Outcome> => {
    const isMeant = (name: string) => folderKey(name) === folderKey(given)
    const group = store.groups().find(({ folder }) => isMeant(folder))
    const folder = group?.folder ?? given
    const taints = () => store.taints.all().filter(row => isMeant(row.group))
    // Those in another case have the same taint, so they cannot stay when it goes.
    const places = () =>
      parents.flatMap(parent =>
        namesIn(parent)
          .filter(isMeant)
          .map(name => join(parent, name)),
      )
    if (!group && taints().length === 0 && places().length === 0) {
      return refused('not_found', `No group has or had the folder ${folder}.`)
    }
    if (!(await options.endSession(folder))) {
      return refused(
        'wrong_state',
        'The group’s agent is at work. Wait for its end, or stop it, then wipe again.',
      )
    }
    if (options.isBusy(folder)) {
      return refused(
        'wrong_state',
        'The host still works on what the group asked for. Wipe it again afterwards.',
      )
    }
    const moved = places().flatMap(path => moveAway(path) ?? [])
    fault('wiped')
    store.transaction(transaction => transaction.forgetSession(folder))
    if (
      !store.agents.incoming({ group: folder, status: 'waiting' }).some(({ channel }) => channel === 'host')
    ) {
      store.taints.clear(folder, carried)
    }
    // What it had sent, and why something was refused, are words of whoever had read it all.
    store.setMeta(wipedAt(folder), String(now()))
    store.refusals.take(folder, 0)
    if (!options.writesElsewhere(folder)) store.taints.clear(folder, folderContext)
    store.audit.append({
      at: now(),
      group: folder,
      actor: 'operator',
      action: 'wipe_group',
      summary: 'remove its folder, home and worktree, and forget what it has read',
      outcome: 'allowed',
      decidedBy: 'operator',
    })
    if (group) options.renew(folder)
    for (const path of moved) remove(path)
    const still = taints().filter(({ context }) => context !== titleContext)
    return done({ folder, removed: moved.length, still_tainted: still.map(({ context }) => context) })
  }

  return {
    isWiping: folder => wiping.has(folderKey(folder)),
    async wipe(folder) {
      const key = folderKey(folder)
      if (wiping.has(key)) return refused('wrong_state', 'The group is being wiped already.')
      wiping.add(key)
      try {
        return await wipe(folder)
      } finally {
        wiping.delete(key)
      }
    },
    tidy() {
      for (const parent of parents)
        for (const name of namesIn(parent)) if (name.startsWith(wiped)) remove(join(parent, name))
    },
  }
}
