import { chownSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import { type Owner, openDirectory } from '@hatchway/spool'
import { type Layout, ownedDirectory } from '../base/layout.ts'
import { type CheckedMounts, checkMounts, type MountRequest, type MountRules } from './allowed-mounts.ts'
import type { Mount } from './types.ts'

/** Where things are inside a sandbox. */
export const inside = {
  ipc: '/workspace/ipc',
  group: '/workspace/group',
  global: '/workspace/global',
  home: '/home/agent',
  bundle: '/opt/hatchway/agent.mjs',
  node: '/opt/hatchway/node',
  model: '/run/hatchway',
  modelSocket: '/run/hatchway/model.sock',
  modelPort: 7711,
} as const

export interface MountsOptions {
  layout: Layout
  group: Pick<Group, 'folder'>
  /** whom the run's files belong to; undefined: ourselves */
  owner: Owner | undefined
  /** the agent's side in one file; undefined: the image brings its own */
  bundle?: string
  /** the Node that runs it; undefined: the image brings its own */
  node?: string
  /** the directory of this run's model socket */
  modelDirectory?: string
  /** where a foreign image looks for the hatch */
  ipcAt?: string
  /** instead of the hatch as it is */
  hatch?: readonly Mount[]
  requests?: readonly MountRequest[]
  rules: MountRules
}

/**
 * Everything a run of this group sees of the host, in the order it is laid. The hatch itself is read-only and each of
 * its subdirectories is a mount of its own, so that nothing can be put in their place; a snapshot is seen
 * as a file of its directory, because a mounted file would stay the old one when it is replaced.
 */
export function mountsFor(options: MountsOptions): CheckedMounts {
  const { layout, group, owner } = options
  const extra = checkMounts(options.requests ?? [], options.rules)
  if (!extra.ok) return extra
  const hatch = join(layout.ipc, group.folder)
  const folder = join(layout.groups, group.folder)
  const home = join(folder, '.home')
  ownedDirectory(folder, owner)
  const problem = ensureHome(folder, home, owner) ?? notADirectory(hatch)
  if (problem !== undefined) return { ok: false, problems: [problem] }

  const ipcAt = options.ipcAt ?? inside.ipc
  const mounts: Mount[] = [
    ...(options.hatch ?? [
      { from: hatch, to: ipcAt, writable: false },
      ...readdirSync(hatch, { withFileTypes: true })
        .filter(entry => entry.isDirectory())
        .map(({ name }) => ({ from: join(hatch, name), to: `${ipcAt}/${name}`, writable: true })),
    ]),
    { from: folder, to: inside.group, writable: true },
    // Also in its place in the folder: what is mounted upon can be neither moved nor replaced by a link to elsewhere.
    { from: home, to: `${inside.group}/.home`, writable: true },
    { from: home, to: inside.home, writable: true },
  ]
  const global = join(layout.groups, 'global')
  if (lstatSync(global, { throwIfNoEntry: false })?.isDirectory())
    mounts.push({ from: global, to: inside.global, writable: false })
  if (options.bundle !== undefined) mounts.push({ from: options.bundle, to: inside.bundle, writable: false })
  if (options.node !== undefined) mounts.push({ from: options.node, to: inside.node, writable: false })
  if (options.modelDirectory !== undefined)
    mounts.push({ from: options.modelDirectory, to: inside.model, writable: false })
  return { ok: true, mounts: [...mounts, ...extra.mounts] }
}

/** The folder every group may read and the operator fills. */
export function createGlobalFolder(layout: Layout): void {
  mkdirSync(join(layout.groups, 'global'), { recursive: true, mode: 0o755 })
}

const notADirectory = (path: string): string | undefined =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? undefined : `${path} is not a directory.`

/**
 * The agent's own settings and sessions. It lies in a folder that the agent writes to, and a mount follows links: a
 * home that is not exactly where we think would let the sandbox choose which directory of the host it gets.
 */
function ensureHome(folder: string, home: string, owner: Owner | undefined): string | undefined {
  const handle = openDirectory(folder)
  if (typeof handle === 'string') return `${folder} is not a directory that can be opened (${handle}).`
  try {
    const made = makeDirectory(join(handle.path, '.home'))
    const found = lstatSync(join(handle.path, '.home'))
    if (!found.isDirectory() || realpathSync(home) !== join(realpathSync(folder), '.home'))
      return `${home} is not a directory. An agent may have put a link in its place: look at it, then remove it.`
    if (made && owner) {
      const inner = openDirectory(join(handle.path, '.home'))
      if (typeof inner === 'string') return `${home} was taken away while it was made.`
      try {
        chownSync(inner.path, owner.uid, owner.gid)
      } finally {
        inner.close()
      }
    }
    return undefined
  } finally {
    handle.close()
  }
}

function makeDirectory(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
