import { chmodSync, chownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DialectName } from '@hatchway/protocol'
import { errorCode, type Owner, pinDirectory } from '@hatchway/spool'
import { createGroupDirectories, createLayout, directoriesOf } from '../layout.ts'
import { bad, type Finding, good, type Patient, some, warning } from './types.ts'

/** A directory as it has to be. */
interface Wanted {
  path: string
  uid: number
  gid: number | undefined
  mode: number
  /** what nobody but its owner may do, and what has to be possible; the rest is a matter of taste */
  forbidden: number
  needed: number
}

/**
 * Wrong owners are the most reported fault of all hatches (lesson 23): the container cannot write, or not remove.
 * Whom things have to belong to follows from whom the state directory belongs to: that is whom the daemon runs as.
 */
export function directories(patient: Patient): Finding[] {
  const { config, layout, checkup } = patient
  const state = look(layout.state)
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

  const agents: Owner =
    state.uid === 0
      ? { uid: config.container.uid ?? 1000, gid: config.container.gid ?? config.container.uid ?? 1000 }
      : { uid: state.uid, gid: state.gid }
  const groups = checkup?.store?.groups ?? []
  const own = (path: string, mode: number): Wanted => ({
    path,
    uid: state.uid,
    gid: undefined,
    mode,
    forbidden: mode === 0o700 ? 0o077 : 0o022,
    needed: 0o700,
  })
  const theirs = (path: string): Wanted => ({ path, ...agents, mode: 0o700, forbidden: 0, needed: 0o700 })
  // Agents of another user have to get through it.
  const way = state.uid === agents.uid ? 0o700 : 0o705
  const wanted: Wanted[] = [
    own(config.data, 0o755),
    ...[layout.state, layout.spool, layout.staging, layout.files].map(path => own(path, 0o700)),
    ...[layout.ipc, layout.groups].map(path => own(path, 0o755)),
    own(layout.errors, 0o750),
    ...groups.flatMap(({ folder, dialect }) => [
      { ...own(join(layout.ipc, folder), 0o755), needed: way },
      ...directoriesOf({ dialect }).map(name => theirs(join(layout.ipc, folder, name))),
      theirs(join(layout.groups, folder)),
    ]),
  ]

  const missing = wanted.filter(({ path }) => !look(path)).map(({ path }) => path)
  const there = wanted.filter(({ path }) => look(path))
  const replaced = there.filter(({ path }) => !look(path)?.isDirectory()).map(({ path }) => path)
  const real = there.filter(({ path }) => look(path)?.isDirectory())
  const strange = real.filter(({ path, uid }) => look(path)?.uid !== uid)
  const open = real.filter(({ path, forbidden, needed }) => {
    const found = (look(path)?.mode ?? 0) & 0o777
    return (found & forbidden) !== 0 || (found & needed) !== needed
  })
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
            for (const { folder, dialect } of groups)
              createGroupDirectories(layout, { folder, dialect }, state.uid === 0 ? agents : undefined)
            return `made ${missing.filter(path => look(path)).length} of them`
          },
        ),
    strange.length === 0
      ? good(
          'owners',
          `Everything belongs to uid ${state.uid}, and what is the agents’ to uid ${agents.uid}.`,
        )
      : bad(
          'owners',
          `${some(strange.map(({ path, uid }) => `${path} (uid ${look(path)?.uid}, not ${uid})`))}. ${us === 0 ? 'Run doctor --fix, or chown them.' : 'Run as root: doctor --fix, or chown them.'}`,
          us === 0 ? () => set(strange, ({ uid, gid }) => ({ uid, gid })) : undefined,
        ),
    open.length === 0
      ? good('modes', 'Nobody can enter or change what is not theirs.')
      : bad(
          'modes',
          `${some(open.map(({ path, mode }) => `${path} (${octal(look(path)?.mode ?? 0)}, should be ${octal(mode)})`))}. Run doctor --fix, or chmod them.`,
          () => set(open, ({ mode }) => ({ mode })),
        ),
    ...strangeFiles(groups, layout.ipc, agents.uid),
  ]
}

const octal = (mode: number) => (mode & 0o777).toString(8)

function look(path: string) {
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
    const directory = pinDirectory(one.path)
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

const mostFiles = 2000

/** Answers that an agent cannot remove stay for ever, and follow-ups with them. */
function strangeFiles(
  groups: readonly { folder: string; dialect: DialectName }[],
  ipc: string,
  uid: number,
): Finding[] {
  const found: string[] = []
  let seen = 0
  for (const group of groups) {
    for (const name of directoriesOf(group)) {
      const path = join(ipc, group.folder, name)
      for (const file of entriesOf(path)) {
        if (++seen > mostFiles) break
        const kind = look(join(path, file))
        if (kind?.isFile() && kind.uid !== uid) found.push(join(path, file))
      }
    }
  }
  return found.length === 0
    ? []
    : [
        warning(
          'files',
          `${some(found)}: not uid ${uid}’s, so that an agent may not be able to read or remove it. Remove it, or chown it.`,
        ),
      ]
}

function entriesOf(path: string): string[] {
  if (!look(path)?.isDirectory()) return []
  try {
    return readdirSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}
