import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  futimesSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errorCode, type Owner } from '@hatchway/spool'
import { createGroupDirectories, createLayout, layoutOf } from '../base/layout.ts'
import { acquire } from '../base/lock.ts'
import { createOwners, type Owners } from '../base/owners.ts'
import type { Config } from '../config.ts'
import { inspectStore } from '../store/inspect.ts'
import { StoreTooNew } from '../store/migrate.ts'
import { openStore } from '../store/sqlite.ts'
import { decompressed } from './compression.ts'
import {
  archiveVersion,
  isMemberPath,
  type Manifest,
  manifestName,
  manifestSchema,
  mayBeLink,
} from './manifest.ts'
import { ArchiveBroken, readTar, type TarEntry } from './tar.ts'

/**
 * Restoring goes through these states, and only the last one changes the data directory:
 *
 *   unpacked    into a directory of its own beside it; no link is made, so none can be followed
 *   compared    every member with the manifest, and the databases with what SQLite says of them
 *   brought up  the database to this version, links, what is an agent's to its group's user
 *   in place    by renaming
 */
export interface RestoreOptions {
  /** moves what is there out of the way, in stead of refusing */
  force?: boolean
}

export interface Restored {
  made_at: string
  hatchway: string
  store_version: number
  files: number
  bytes: number
  groups: number
  left_out: Manifest['left_out']
  /** where the data directory that was there is now */
  moved_to: string | null
}

/** Nothing was changed. */
class RestoreRefused extends Error {
  override name = 'RestoreRefused'
}

const mostManifestBytes = 536_870_912
const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export async function restoreBackup(
  config: Config,
  archive: AsyncIterable<Buffer>,
  { force = false }: RestoreOptions = {},
): Promise<Restored> {
  const { data } = config
  const isUsed = contentOf(data).length > 0
  if (isUsed && !force) {
    throw new RestoreRefused(
      `The data directory ${data} is not empty. Restore into another one, or say --force, which moves it aside.`,
    )
  }
  // Whoever has it at work must not have it moved away.
  const lock = isUsed ? await acquire(data, { purpose: 'command' }) : undefined
  const parent = dirname(data)
  mkdirSync(parent, { recursive: true })
  const staging = mkdtempSync(join(isOwnFileSystem(data) ? data : parent, `.${basename(data)}-restore-`))
  try {
    const { manifest, links } = await unpack(staging, decompressed(archive))
    const groups = await bringUp(config, staging, manifest, links)
    const movedTo = moveIn(staging, data, isUsed)
    return {
      made_at: manifest.made_at,
      hatchway: manifest.hatchway,
      store_version: manifest.store_version,
      files: manifest.members.filter(({ kind, handled }) => kind === 'file' && !handled).length,
      bytes: manifest.members.reduce((sum, { size }) => sum + size, 0),
      groups,
      left_out: manifest.left_out,
      moved_to: movedTo,
    }
  } finally {
    lock?.release()
    rmSync(staging, { recursive: true, force: true })
  }
}

/** A file system's own, at the top of a mounted one. */
const contentOf = (data: string): string[] =>
  existsSync(data) ? readdirSync(data).filter(name => name !== 'lost+found') : []

interface Unpacked {
  manifest: Manifest
  links: readonly TarEntry[]
}

async function unpack(staging: string, bytes: AsyncIterable<Buffer>): Promise<Unpacked> {
  const found = new Map<string, { kind: string; size: number; sha256: string | null; target: string }>()
  const links: TarEntry[] = []
  const late: TarEntry[] = []
  let manifest: Manifest | undefined
  for await (const { entry, content } of readTar(bytes)) {
    if (manifest) throw new ArchiveBroken('The archive goes on after its manifest.')
    if (entry.path === manifestName && entry.kind === 'file') {
      manifest = await readManifest(entry, content)
      continue
    }
    if (!isMemberPath(entry.path))
      throw new ArchiveBroken(
        `The archive holds ${JSON.stringify(entry.path)}, which is no place in a data directory.`,
      )
    if (found.has(entry.path)) throw new ArchiveBroken(`The archive holds ${entry.path} twice.`)
    if (entry.kind === 'link' && !mayBeLink(entry.path))
      throw new ArchiveBroken(`The archive has a link at ${entry.path}, where there is none.`)
    const sha256 = await unpackOne(staging, entry, content)
    if (entry.kind === 'directory') late.push(entry)
    if (entry.kind === 'link') links.push(entry)
    found.set(entry.path, { kind: entry.kind, size: entry.size, sha256, target: entry.target })
  }
  if (!manifest)
    throw new ArchiveBroken('The archive has no manifest: it is not a backup, or was not finished.')
  for (const { path, kind, size, sha256 } of manifest.members) {
    const member = found.get(path)
    if (!member) throw new ArchiveBroken(`The archive lacks ${path}, which its manifest names.`)
    if (member.kind !== kind || member.size !== size || member.sha256 !== sha256)
      throw new ArchiveBroken(`The archive’s ${path} is not what its manifest says.`)
    found.delete(path)
  }
  const [extra] = found.keys()
  if (extra !== undefined)
    throw new ArchiveBroken(`The archive holds ${extra}, which its manifest does not name.`)
  // A directory that may not be written to would have kept its own files out.
  for (const { path, mode } of late) chmodSync(join(staging, path), mode | 0o700)
  for (const { path } of links)
    if (lstatSync(join(staging, path), { throwIfNoEntry: false }))
      throw new ArchiveBroken(`The archive’s ${path} is a link and something else.`)
  for (const { path, handled } of manifest.members) if (handled) rmSync(join(staging, path))
  return { manifest, links }
}

async function readManifest(entry: TarEntry, content: AsyncIterable<Buffer>): Promise<Manifest> {
  if (entry.size > mostManifestBytes) throw new ArchiveBroken('The archive’s manifest is too large.')
  const parts: Buffer[] = []
  for await (const part of content) parts.push(part)
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.concat(parts).toString('utf8'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  const manifest = manifestSchema.safeParse(parsed)
  if (!manifest.success) throw new ArchiveBroken('The archive’s manifest is not one of a backup.')
  if (manifest.data.version > archiveVersion)
    throw new RestoreRefused(
      `The backup was made by a newer Hatchway (${manifest.data.hatchway}). Restore it with that one.`,
    )
  return manifest.data
}

/** Every directory is ours and new: nothing in an archive can make a place lead elsewhere. */
async function unpackOne(
  staging: string,
  entry: TarEntry,
  content: AsyncIterable<Buffer>,
): Promise<string | null> {
  const path = join(staging, entry.path)
  try {
    mkdirSync(entry.kind === 'directory' ? path : dirname(path), { recursive: true, mode: 0o700 })
    return entry.kind === 'file' ? await unpackFile(path, entry, content) : null
  } catch (error) {
    if (['EEXIST', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG'].includes(errorCode(error)))
      throw new ArchiveBroken(`The archive’s ${entry.path} does not fit in with the rest of it.`, {
        cause: error,
      })
    throw error
  }
}

async function unpackFile(path: string, entry: TarEntry, content: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  const fd = openSync(path, newFile, 0o600)
  try {
    for await (const part of content) {
      hash.update(part)
      for (let at = 0; at < part.length; ) at += writeSync(fd, part, at)
    }
    futimesSync(fd, entry.mtimeMs / 1000, entry.mtimeMs / 1000)
  } finally {
    closeSync(fd)
  }
  chmodSync(path, entry.mode)
  return hash.digest('hex')
}

/** Checks the databases, and brings the host's own up to this version. */
async function bringUp(
  config: Config,
  staging: string,
  { store_version }: Manifest,
  links: readonly TarEntry[],
): Promise<number> {
  const layout = layoutOf(staging)
  if (!existsSync(layout.database)) throw new ArchiveBroken('The archive holds no database.')
  const facts = await inspectStore(layout.database)
  if (facts.damage.length > 0)
    throw new ArchiveBroken(`The archive’s database is damaged: ${facts.damage[0]}.`)
  if (facts.version > facts.newest || store_version > facts.newest)
    throw new StoreTooNew(
      `The backup was made by a newer Hatchway (store version ${Math.max(facts.version, store_version)}, this one knows ${facts.newest}). Upgrade Hatchway and restore it then.`,
    )
  if (!facts.audit.ok)
    throw new ArchiveBroken(`The archive’s database cannot be trusted: ${facts.audit.message}`)
  const memory = join(layout.state, 'memory')
  for (const name of existsSync(memory) ? readdirSync(memory) : []) {
    const { damage } = await inspectStore(join(memory, name), 'damage')
    if (damage.length > 0)
      throw new ArchiveBroken(`The archive’s memories ${name} are damaged: ${damage[0]}.`)
  }
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'full', prepare: false })
  try {
    // A copy that runs beside what it was copied from must not take that one's agents for its own.
    store.setMeta('installation', crypto.randomUUID())
    const owners = createOwners(config, store)
    for (const group of store.groups()) createGroupDirectories(layout, group, owners(group.folder))
    for (const { path, target } of links) symlinkSync(target, join(staging, path))
    giveAway(staging, owners)
    return store.groups().length
  } finally {
    store.close()
  }
}

/** What is an agent's belongs to its group's user, whoever it belonged to where the backup was made. */
function giveAway(staging: string, owners: Owners): void {
  for (const room of ['state', 'spool', 'files']) chmodSync(join(staging, room), 0o700)
  for (const room of ['', 'ipc', 'groups']) chmodSync(join(staging, room), 0o755)
  const { ipc, groups, worktrees } = layoutOf(staging)
  const give = (path: string, folder: string) => {
    const owner = owners(folder)
    if (owner) chownAll(path, owner)
  }
  for (const group of directoriesIn(ipc).filter(path => basename(path) !== 'errors'))
    for (const path of directoriesIn(group)) give(path, basename(group))
  for (const room of [groups, worktrees])
    for (const path of directoriesIn(room)) if (basename(path) !== 'global') give(path, basename(path))
}

const directoriesIn = (path: string): string[] =>
  existsSync(path)
    ? readdirSync(path, { withFileTypes: true })
        .filter(entry => entry.isDirectory())
        .map(({ name }) => join(path, name))
    : []

function chownAll(path: string, { uid, gid }: Owner): void {
  const kind = lstatSync(path)
  if (kind.isSymbolicLink()) lchownSync(path, uid, gid)
  else chownSync(path, uid, gid)
  if (kind.isDirectory()) for (const name of readdirSync(path)) chownAll(join(path, name), { uid, gid })
}

/** A mounted directory cannot be renamed; what is in it can. */
const isOwnFileSystem = (data: string): boolean =>
  existsSync(data) && lstatSync(data).dev !== lstatSync(dirname(data)).dev

/** Where what was there is now. */
function moveIn(staging: string, data: string, isUsed: boolean): string | null {
  const stamp = new Date().toISOString().replace(/[:.]/g, '-')
  if (dirname(staging) !== data) {
    const aside = isUsed ? `${data}.before-${stamp}` : null
    if (aside !== null) renameSync(data, aside)
    else if (existsSync(data)) rmdirSync(data)
    renameSync(staging, data)
    return aside
  }
  const aside = isUsed ? join(data, `before-${stamp}`) : null
  if (aside !== null) {
    mkdirSync(aside, { mode: 0o700 })
    for (const name of contentOf(data))
      if (join(data, name) !== aside && join(data, name) !== staging)
        renameSync(join(data, name), join(aside, name))
  }
  // `state` last: without it there is no data directory that somebody could begin to use.
  const names = readdirSync(staging).sort((a, b) => Number(a === 'state') - Number(b === 'state'))
  for (const name of names) renameSync(join(staging, name), join(data, name))
  return aside
}
