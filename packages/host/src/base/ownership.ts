import { chownSync, lchownSync, lstatSync, readdirSync, type Stats } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import { type DirectoryHandle, errorCode, type Owner, openDirectory } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Layout } from './layout.ts'
import type { Owners } from './owners.ts'

/**
 * Gives what a group has to its user where it still belongs to an earlier one: in earlier versions all groups had the
 * same, and `container.uid` may be set or removed.
 *
 *   earlier user's   nothing is done yet
 *   mixed            contents are given before the directory they lie in, and the group's folder comes last of all
 *   its user's       the group's folder belongs to its user: everything was given
 *
 * So the folder's own owner says whether there is anything to do, and a host that is killed in between goes on later.
 * Only what belonged to the same user as its directory is given, and nothing that was root's: an operator's own files in
 * there stay the operator's. No run of the group is under way meanwhile: its launch waits.
 */
export interface Ownership {
  /** before a run of the group begins */
  settle(folder: string): Promise<void>
  /** every folder of an earlier version, or of other settings, once and in the background */
  settleAll(): void
  /** what is left goes on at the next start */
  stop(): Promise<void>
}

export interface OwnershipOptions {
  layout: Pick<Layout, 'ipc' | 'groups' | 'worktrees'>
  owners: Owners
  store: {
    agentFolders(): readonly string[]
    meta(key: string): string | undefined
    setMeta(key: string, value: string): void
  }
  /** what the owners follow from: another value means that files have to be looked at again */
  rule: string
  log: Logger
}

const ruleKey = 'files_given_by'
const entriesAtOnce = 500
const entriesPerReport = 100_000
/** Directories deeper than this are made by nobody in good faith, and each level costs a handle. */
const deepest = 256

export function createOwnership(options: OwnershipOptions): Ownership {
  const { layout, owners, store, log } = options
  const underWay = new Map<string, Promise<void>>()
  const stopping = new AbortController()
  let all: Promise<void> = Promise.resolve()
  // Where nothing is yet, everything will be made with the right owner.
  if (store.meta(ruleKey) === undefined && store.agentFolders().length === 0)
    store.setMeta(ruleKey, options.rule)

  const giveAll = async (folder: string, owner: Owner) => {
    let seen = 0
    const given = await giveGroup(layout, folder, owner, async () => {
      if (++seen % entriesPerReport === 0)
        log.info({ group: folder, seen, uid: owner.uid }, 'still giving files to the group’s user')
      stopping.signal.throwIfAborted()
    })
    log.info({ group: folder, given, uid: owner.uid }, 'files were given to the group’s user')
  }

  const settle = async (folder: string): Promise<void> => {
    const owner = owners(folder)
    const found = lstatSync(join(layout.groups, folder), { throwIfNoEntry: false })
    if (!owner || !found || belongsTo(found, owner)) return
    const begun =
      underWay.get(folder) ??
      giveAll(folder, owner).finally(() => {
        underWay.delete(folder)
      })
    underWay.set(folder, begun)
    await begun
  }

  return {
    settle,
    settleAll() {
      if (store.meta(ruleKey) === options.rule) return
      all = (async () => {
        for (const [index, folder] of store.agentFolders().entries()) {
          if (index % entriesAtOnce === 0) await breathe()
          if (stopping.signal.aborted) return
          await settle(folder)
        }
        store.setMeta(ruleKey, options.rule)
      })().catch((error: unknown) => {
        if (stopping.signal.aborted) return
        log.error(
          { err: error },
          'files could not be given to their group’s user; it is tried again before a run and at the next start',
        )
      })
    },
    async stop() {
      stopping.abort()
      await Promise.allSettled([all, ...underWay.values()])
    },
  }
}

const belongsTo = (found: Stats, { uid, gid }: Owner) => found.uid === uid && found.gid === gid

/** How many files and directories were given. `step` comes before each. */
export async function giveGroup(
  layout: OwnershipOptions['layout'],
  folder: string,
  owner: Owner,
  step: () => Promise<void> = async () => {},
): Promise<number> {
  const hatch = join(layout.ipc, folder)
  const walk: Walk = { owner, step, seen: 0, given: 0 }
  const places = [
    ...(lstatSync(hatch, { throwIfNoEntry: false })?.isDirectory()
      ? readdirSync(hatch).map(name => join(hatch, name))
      : []),
    join(layout.worktrees, folder),
    join(layout.groups, folder),
  ]
  for (const place of places) {
    const found = lstatSync(place, { throwIfNoEntry: false })
    if (!found?.isDirectory() || belongsTo(found, owner)) continue
    const handle = openDirectory(place)
    if (typeof handle === 'string') continue
    try {
      if (found.uid !== 0) await giveContents(handle, found.uid, walk, 0)
      give(() => chownSync(handle.path, owner.uid, owner.gid), walk)
    } finally {
      handle.close()
    }
  }
  return walk.given
}

interface Walk {
  owner: Owner
  step: () => Promise<void>
  seen: number
  given: number
}

async function giveContents(
  directory: DirectoryHandle,
  before: number,
  walk: Walk,
  depth: number,
): Promise<void> {
  const { owner } = walk
  for await (const { name } of await opendir(directory.path)) {
    if (++walk.seen % entriesAtOnce === 0) await breathe()
    await walk.step()
    const path = join(directory.path, name)
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found || belongsTo(found, owner)) continue
    const isTheirs = found.uid === before
    if (!found.isDirectory()) {
      if (isTheirs) give(() => lchownSync(path, owner.uid, owner.gid), walk)
      continue
    }
    const inner = depth < deepest ? openDirectory(path) : 'too deep'
    if (typeof inner === 'string') continue
    try {
      await giveContents(inner, before, walk, depth + 1)
      if (isTheirs) give(() => chownSync(inner.path, owner.uid, owner.gid), walk)
    } finally {
      inner.close()
    }
  }
}

function give(change: () => void, walk: Walk): void {
  try {
    change()
    walk.given++
  } catch (error) {
    // Removed meanwhile, or marked as unchangeable by an operator.
    if (!['ENOENT', 'EPERM', 'EROFS'].includes(errorCode(error))) throw error
  }
}
