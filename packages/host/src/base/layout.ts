import { chownSync, mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { dialects, type Group, inboundDirectories } from '@hatchway/protocol'
import { type Inbox, type Owner, openDirectory } from '@hatchway/spool'

/**
 * Where everything lies below the data directory. Only `ipc/{folder}`, `groups/{folder}`, `worktrees/{folder}`,
 * `state/views/{folder}` and, read-only, `repos/{name}.git` and `drivers/{name}/node_modules` are ever mounted.
 */
export interface Layout {
  ipc: string
  errors: string
  /** claimed files; with `staging`, on the file system of `ipc` and outside every mount */
  spool: string
  staging: string
  state: string
  database: string
  /** roots of hatches that containers may write to, made anew for each run */
  views: string
  groups: string
  /** of repositories that groups work on: what they begin from */
  repos: string
  /** what each group has of its repository */
  worktrees: string
  /** what people and agents have sent: the host's own copies */
  files: string
  /** packages of drivers that do not come with Hatchway */
  drivers: string
  /** libraries of channels, in the same way */
  channels: string
}

export function layoutOf(data: string): Layout {
  const state = join(data, 'state')
  return {
    ipc: join(data, 'ipc'),
    errors: join(data, 'ipc', 'errors'),
    spool: join(data, 'spool'),
    staging: join(data, 'spool', 'staging'),
    state,
    database: join(state, 'hatchway.db'),
    views: join(state, 'views'),
    groups: join(data, 'groups'),
    repos: join(data, 'repos'),
    worktrees: join(data, 'worktrees'),
    files: join(data, 'files'),
    drivers: join(data, 'drivers'),
    channels: join(data, 'channels'),
  }
}

export function createLayout(layout: Layout): void {
  for (const path of [layout.state, layout.spool, layout.staging, layout.files])
    mkdirSync(path, { recursive: true, mode: 0o700 })
  for (const path of [layout.ipc, layout.groups]) mkdirSync(path, { recursive: true, mode: 0o755 })
  mkdirSync(layout.errors, { recursive: true, mode: 0o750 })
}

/** Half-written files of a process that was killed. Only for whoever holds the data directory's lock. */
export function clearStaging(layout: Layout): void {
  for (const name of readdirSync(layout.staging)) unlinkSync(join(layout.staging, name))
}

/** Directories the host takes files from; a dialect may add to them. */
const alwaysTaken = ['messages', 'tasks', 'groups']
const takenIfPresent = inboundDirectories.filter(name => !alwaysTaken.includes(name))

/**
 * What the spool takes from a group. Only a main group's registrations are ever carried out, so where the dialect does
 * not have the directory `groups/`, it is not worth a watch: what a group puts there is refused at the next sweep.
 */
export function inboxOf(layout: Layout, group: Pick<Group, 'folder' | 'dialect' | 'main'>): Inbox {
  const { directories } = dialects[group.dialect]
  const registers = group.main || directories.includes('groups')
  return {
    id: group.folder,
    path: join(layout.ipc, group.folder),
    subdirectories: dropsOf(group),
    sweptOnly: registers ? [] : ['groups'],
  }
}

const dropsOf = (group: Pick<Group, 'dialect'>): string[] => [
  ...alwaysTaken,
  ...takenIfPresent.filter(name => dialects[group.dialect].directories.includes(name)),
]
export const possibleDrops: readonly string[] = inboundDirectories

/** The agent's directories below `ipc/{folder}`. */
export const directoriesOf = (group: Pick<Group, 'dialect'>): string[] => [
  ...new Set([...dropsOf(group), ...dialects[group.dialect].directories]),
]

/**
 * The directories of a group, with the right owner and mode. The parent stays the host's: a container that has it
 * mounted cannot put anything in the place of a subdirectory or a snapshot.
 */
export function createGroupDirectories(
  layout: Layout,
  group: Pick<Group, 'folder' | 'dialect'>,
  owner: Owner | undefined,
): void {
  const parent = join(layout.ipc, group.folder)
  mkdirSync(parent, { recursive: true, mode: 0o755 })
  for (const name of directoriesOf(group)) ownedDirectory(join(parent, name), owner)
  ownedDirectory(join(layout.groups, group.folder), owner)
}

/** Whatever is there already is left alone, and what is made is given away by its handle: never through a link. */
export function ownedDirectory(path: string, owner: Owner | undefined): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw error
  }
  if (!owner) return
  const made = openDirectory(path)
  if (typeof made === 'string') return
  try {
    chownSync(made.path, owner.uid, owner.gid)
  } finally {
    made.close()
  }
}
