import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DialectName } from '@hatchway/protocol'
import { errorCode, type Owner, openDirectory } from '@hatchway/spool'
import { createGroupDirectories, createLayout, directoriesOf, type Layout } from '../base/layout.ts'
import { ownerFor } from '../base/owners.ts'
import { giveGroup } from '../base/ownership.ts'
import { type Config, settingsOf } from '../config.ts'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

/** A directory as it has to be. */
interface Wanted {
  path: string
  uid: number
  gid: number | undefined
  mode: number
  /** what nobody but its owner may do, and what has to be possible; the rest is a matter of taste */
  forbidden: number
  needed: number
  /** whose it is; left out: the host's own */
  group?: { folder: string; owner: Owner }
}

const earlierUid = 1000

/**
 * Wrong owners are the most reported fault of all hatches: the container cannot write, or not remove.
 * Whom things have to belong to follows from whom the state directory belongs to: that is whom the daemon runs as.
 */
export function directories(patient: DoctorContext): Finding[] {
  const { config, layout, checkup } = patient
  const state = statOf(layout.state)
  if (!state) return [warning('data', `${config.data} is new: nothing has been started on it.`)]
  if (!state.isDirectory()) return [bad('data', `${layout.state} is not a directory. Move it elsewhere.`)]
  const us = process.getuid?.() ?? state.uid
  if (us !== 0 && us !== state.uid)
    return [
      bad(
        'data',
        `${config.data} belongs to uid ${state.uid}, and this is uid ${us}. Run it as that user, or as root.`,
      ),
    ]

  const groups = (checkup?.store?.groups ?? []).map(group => ({
    ...group,
    // A database of an earlier version knows of one user for all; the next start gives each group its own.
    owner: ownerFor(config, state.uid, () => group.uid ?? earlierUid) ?? { uid: state.uid, gid: state.gid },
  }))
  const wanted = wantedFor(config.data, layout, state.uid, groups)
  const missing = wanted.filter(({ path }) => !statOf(path)).map(({ path }) => path)
  const there = wanted.filter(({ path }) => statOf(path))
  const replaced = there.filter(({ path }) => !statOf(path)?.isDirectory()).map(({ path }) => path)
  const real = there.filter(({ path }) => statOf(path)?.isDirectory())
  return [
    replaced.length === 0
      ? good('directories', `All ${real.length} are directories, and none is a link.`)
      : bad(
          'directories',
          `${some(replaced)}: no directory, or a link to one. Somebody has replaced it: find out who, move it away, and run doctor --fix.`,
        ),
    missing.length === 0
      ? good('missing', 'Nothing is missing.')
      : warning(
          'missing',
          `${some(missing)} should be there. The next start makes what it needs, or --fix.`,
          () => {
            createLayout(layout)
            for (const group of groups)
              createGroupDirectories(layout, group, state.uid === 0 ? group.owner : undefined)
            return `made ${missing.filter(path => statOf(path)).length} of them`
          },
        ),
    ownersOf(real, layout, us === 0) ??
      good(
        'owners',
        `Everything belongs to uid ${state.uid}, and what is the agents’ to ${usersOf(groups)}.`,
      ),
    modesOf(real),
    ...strangeFiles(groups, layout.ipc, us === 0),
    ...(us === 0 ? groups.flatMap(group => closedMounts(group, config)) : []),
  ]
}

interface OwnedGroup {
  folder: string
  dialect: DialectName
  owner: Owner
}

function wantedFor(data: string, layout: Layout, uid: number, groups: readonly OwnedGroup[]): Wanted[] {
  const own = (path: string, mode: number): Wanted => ({
    ...{ path, uid, gid: undefined, mode },
    forbidden: mode === 0o700 ? 0o077 : 0o022,
    needed: 0o700,
  })
  const theirs = (path: string, group: OwnedGroup): Wanted => ({
    ...{ path, ...group.owner, mode: 0o700, forbidden: 0, needed: 0o700 },
    group,
  })
  const existing = (wanted: Wanted): Wanted[] => (statOf(wanted.path) ? [wanted] : [])
  return [
    own(data, 0o755),
    ...[layout.state, layout.spool, layout.staging, layout.files].map(path => own(path, 0o700)),
    ...[layout.ipc, layout.groups].map(path => own(path, 0o755)),
    own(layout.errors, 0o750),
    ...groups.flatMap(group => [
      // Agents of another user have to get through it.
      { ...own(join(layout.ipc, group.folder), 0o755), needed: uid === group.owner.uid ? 0o700 : 0o705 },
      ...directoriesOf(group).map(name => theirs(join(layout.ipc, group.folder, name), group)),
      theirs(join(layout.groups, group.folder), group),
      ...existing(theirs(join(layout.groups, group.folder, '.home'), group)),
      ...existing(theirs(join(layout.worktrees, group.folder), group)),
    ]),
  ]
}

/** undefined: everything belongs to whom it should */
function ownersOf(real: readonly Wanted[], layout: Layout, mayGive: boolean): Finding | undefined {
  const strange = real.filter(({ path, uid }) => statOf(path)?.uid !== uid)
  if (strange.length === 0) return undefined
  return bad(
    'owners',
    `${some(strange.map(({ path, uid }) => `${path} (uid ${statOf(path)?.uid}, not ${uid})`))}. ${mayGive ? 'Run doctor --fix, or chown them.' : 'Run as root: doctor --fix, or chown them.'}`,
    mayGive ? () => giveBack(strange, layout) : undefined,
  )
}

function modesOf(real: readonly Wanted[]): Finding {
  const open = real.filter(({ path, forbidden, needed }) => {
    const found = (statOf(path)?.mode ?? 0) & 0o777
    return (found & forbidden) !== 0 || (found & needed) !== needed
  })
  if (open.length === 0) return good('modes', 'Nobody can enter or change what is not theirs.')
  return bad(
    'modes',
    `${some(open.map(({ path, mode }) => `${path} (${octal(statOf(path)?.mode ?? 0)}, should be ${octal(mode)})`))}. Run doctor --fix, or chmod them.`,
    () => set(open, ({ mode }) => ({ mode })),
  )
}

const octal = (mode: number) => (mode & 0o777).toString(8)

function statOf(path: string) {
  return lstatSync(path, { throwIfNoEntry: false })
}

/** By its handle: whatever is put in its place meanwhile stays as it is. */
function set(
  wanted: readonly Wanted[],
  change: (wanted: Wanted) => { uid?: number; gid?: number | undefined; mode?: number },
): string {
  const done: string[] = []
  const failed: string[] = []
  for (const one of wanted) {
    const directory = openDirectory(one.path)
    if (typeof directory === 'string') {
      failed.push(one.path)
      continue
    }
    try {
      const { uid, gid, mode } = change(one)
      if (uid !== undefined) chownSync(directory.path, uid, gid ?? lstatSync(one.path).gid)
      if (mode !== undefined) chmodSync(directory.path, mode)
      done.push(one.path)
    } catch (error) {
      failed.push(`${one.path} (${errorCode(error)})`)
    } finally {
      directory.close()
    }
  }
  return `set ${done.length}${failed.length > 0 ? `, not ${some(failed)}` : ''}`
}

const usersOf = (groups: readonly { owner: Owner }[]): string => {
  const uids = [...new Set(groups.map(({ owner }) => `uid ${owner.uid}`))]
  return uids.length > 1 ? `a user for each group (${some(uids)})` : (uids[0] ?? 'them')
}

/** A group's directory is given with what is in it: the owner of the outermost one says that all of it was given. */
async function giveBack(strange: readonly Wanted[], layout: Layout): Promise<string> {
  const groups = new Map(
    strange.flatMap(({ group }) => (group ? [[group.folder, group.owner] as const] : [])),
  )
  let given = 0
  for (const [folder, owner] of groups) given += await giveGroup(layout, folder, owner)
  const said = set(strange, ({ uid, gid }) => ({ uid, gid }))
  return given > strange.length ? `${said}, and ${given} files and directories in all` : said
}

/** Directories of the operator's own that are mounted, and of no use to the group's user. Asked as that user. */
function closedMounts(group: { folder: string; owner: Owner }, config: Config): Finding[] {
  const { folder, owner } = group
  return (settingsOf(config, folder).mounts ?? []).flatMap(({ from, writable }) => {
    if (!statOf(from)) return []
    const wanted = ['-r', '.', '-a', '-x', '.', ...(writable ? ['-a', '-w', '.'] : [])]
    if (spawnSync('test', wanted, { ...owner, cwd: from, stdio: 'ignore' }).status === 0) return []
    return [
      warning(
        'configuration',
        `groups.${folder}.mounts: uid ${owner.uid}, whom its agents run as, cannot ${writable ? 'write to' : 'read'} ${from}. Run: setfacl -R -m u:${owner.uid}:${writable ? 'rwX' : 'rX'} ${from}`,
      ),
    ]
  })
}

const mostFiles = 2000

interface Strange {
  directory: string
  name: string
  owner: Owner
}

/**
 * Answers that an agent cannot remove stay for ever, and follow-ups with them; and where `.tmp`, in which its side writes
 * files before it posts them, is not its own, it can post nothing at all.
 */
function strangeFiles(groups: readonly OwnedGroup[], ipc: string, mayGive: boolean): Finding[] {
  const found: Strange[] = []
  let seen = 0
  const scan = (directory: string, owner: Owner) => {
    for (const name of entriesOf(directory)) {
      if (++seen > mostFiles) return
      const path = join(directory, name)
      const kind = statOf(path)
      const isOurs = name === '.tmp' && kind?.isDirectory()
      // A second name may be somewhere else, where it is not the agent's.
      if ((isOurs || (kind?.isFile() && kind.nlink === 1)) && kind?.uid !== owner.uid)
        found.push({ directory, name, owner })
      if (isOurs) scan(path, owner)
    }
  }
  for (const group of groups)
    for (const name of directoriesOf(group)) scan(join(ipc, group.folder, name), group.owner)
  if (found.length === 0) return []
  const paths = found.map(({ directory, name, owner }) => `${join(directory, name)} (not uid ${owner.uid}’s)`)
  const says = `${some(paths)}: an agent may not be able to read or remove it, or to post.`
  return mayGive
    ? [warning('files', `${says} Run doctor --fix, or chown it.`, () => giveFiles(found))]
    : [warning('files', `${says} Run as root: doctor --fix, or chown it.`)]
}

/** Each by the handle of its directory, and no link is followed. */
function giveFiles(found: readonly Strange[]): string {
  let given = 0
  for (const { directory, name, owner } of found) {
    const handle = openDirectory(directory)
    if (typeof handle === 'string') continue
    try {
      lchownSync(join(handle.path, name), owner.uid, owner.gid)
      given++
    } catch (error) {
      // Taken or removed meanwhile.
      if (errorCode(error) !== 'ENOENT') throw error
    } finally {
      handle.close()
    }
  }
  return `gave ${given} of ${found.length} to their agents`
}

function entriesOf(path: string): string[] {
  if (!statOf(path)?.isDirectory()) return []
  try {
    return readdirSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}
