import { randomUUID } from 'node:crypto'
import { lstatSync, readdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Outcome } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Layout } from '../base/layout.ts'
import { done, refused } from '../base/outcome.ts'
import { removeTree } from '../base/remove-tree.ts'
import { carried, folderContext, titleContext, wipedAt } from '../store/contexts.ts'
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

  const wipe = async (folder: string): Promise<Outcome> => {
    const places = [layout.groups, layout.worktrees, layout.ipc].map(parent => join(parent, folder))
    const group = store.group(folder)
    const isKnown = group ?? store.taints.all().find(row => row.group === folder)
    if (!isKnown && !places.some(path => lstatSync(path, { throwIfNoEntry: false }))) {
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
    const moved = places.flatMap(path => moveAway(path) ?? [])
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
    const still = store.taints.all().filter(row => row.group === folder && row.context !== titleContext)
    return done({ folder, removed: moved.length, still_tainted: still.map(({ context }) => context) })
  }

  return {
    isWiping: folder => wiping.has(folder),
    async wipe(folder) {
      if (wiping.has(folder)) return refused('wrong_state', 'The group is being wiped already.')
      wiping.add(folder)
      try {
        return await wipe(folder)
      } finally {
        wiping.delete(folder)
      }
    },
    tidy() {
      for (const parent of [layout.groups, layout.worktrees, layout.ipc]) {
        if (!lstatSync(parent, { throwIfNoEntry: false })) continue
        for (const name of readdirSync(parent)) if (name.startsWith(wiped)) remove(join(parent, name))
      }
    },
  }
}
