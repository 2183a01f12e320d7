import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { errorCode } from '@hatchway/spool'
import { type Layout, possibleDrops } from '../base/layout.ts'
import { version } from '../base/version.ts'
import { copyAside, settleAside } from '../store/inspect-aside.ts'
import { newestVersion } from '../store/migrate.ts'
import type { Store } from '../store/types.ts'
import { archiveVersion, type Manifest, type Member, manifestName } from './manifest.ts'
import { padding, type TarEntry, tarEnd, tarHeader } from './tar.ts'
import { type Found, walk } from './walk.ts'

/**
 * A backup while the daemon is at work, in this order, which loses nothing and repeats nothing:
 *
 *   1. files that wait in `ipc`, then those that are claimed, in `spool`
 *   2. the database, as it was at one moment after that
 *   3. whatever the database speaks of: memories, attachments, answers, refused files; and the groups' own files
 *   4. the manifest, without which nothing of it is restored
 *
 * A file of (1) that was handled before (2) is known to the database: a claimed one by its number, as after a crash; one
 * that only waited is marked in the manifest, and is not restored.
 */
export interface BackupOptions {
  /** the groups' own files and their repositories */
  groups: boolean
  /** what lets browsers in: the token, and who is signed in */
  token: boolean
}

export interface BackupSource {
  store: Pick<Store, 'copyTo' | 'lastSeq'>
  layout: Layout
  now(): Date
}

const stagingPrefix = 'backup-'
/** Of this process and this machine, or made anew; and what is copied in another way. */
const passing =
  /^state\/(?:daemon\.(?:lock|json)|supervisor\.lock|deploy\.json|api\.sock|runs|views|memory|backup-[^/]*|hatchway\.db)(?:-wal|-shm|-journal)?$/

export async function* writeBackup(source: BackupSource, options: BackupOptions): AsyncGenerator<Buffer> {
  const { store, layout, now } = source
  const madeAt = now().toISOString()
  const staging = mkdtempSync(join(layout.state, stagingPrefix))
  const archive = createArchive()
  try {
    const rooms = [layout.ipc, layout.spool, layout.state, layout.files]
    if (options.groups) rooms.push(layout.groups, layout.repos, layout.worktrees)
    for (const room of rooms) yield* archive.putRoom(room)
    // What is handled from here on has a larger number.
    const seq = store.lastSeq()
    const waiting = new Map<string, Member>()
    const claimed = new Set<string>()
    yield* putPosted(archive, layout, waiting, claimed)

    const copy = join(staging, 'hatchway.db')
    await store.copyTo(copy)
    const handled = new Set(await settleAside(copy, { seq, keepsSessions: options.token }))
    for (const [key, member] of waiting) {
      if (claimed.has(key) || handled.has(`${member.path.slice('ipc/'.length)}/${key}`)) member.handled = true
    }
    yield* archive.putAll(staging, 'state', path => path !== 'state/hatchway.db')
    yield* putRest(archive, layout, staging, options)
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }

  const manifest = Buffer.from(
    JSON.stringify({
      format: 'hatchway-backup',
      version: archiveVersion,
      hatchway: version,
      store_version: newestVersion,
      made_at: madeAt,
      groups: options.groups,
      left_out: archive.leftOut,
      members: archive.members,
    } satisfies Manifest),
  )
  yield tarHeader(entryOf(manifestName, manifest.length, Date.parse(madeAt)))
  yield manifest
  yield padding(manifest.length)
  yield tarEnd
}

type Archive = ReturnType<typeof createArchive>

/** Each path once, and a note of everything that is in it, or is not. */
function createArchive() {
  const members: Member[] = []
  const leftOut: Manifest['left_out'] = []
  const seen = new Set<string>()
  const leaveOut = (path: string, why: string) => void leftOut.push({ path, why })
  const note = (member: Member) => {
    seen.add(member.path)
    members.push(member)
    return member
  }

  /** what was put; undefined: nothing */
  async function* put(found: Found): AsyncGenerator<Buffer, Member | undefined> {
    // The way to what was taken before, or a name that came back.
    if (seen.has(found.path)) return undefined
    if (found.kind !== 'file') {
      yield tarHeader(found)
      return note({ path: found.path, kind: found.kind, size: 0, sha256: null })
    }
    const file = await openFound(found, leaveOut)
    if (!file) return undefined
    const hash = createHash('sha256')
    try {
      const { size } = await file.stat()
      yield tarHeader({ ...found, size })
      for await (const part of exactly(file, size)) {
        hash.update(part)
        yield part
      }
      yield padding(size)
      return note({ path: found.path, kind: 'file', size, sha256: hash.digest('hex') })
    } finally {
      await file.close()
    }
  }
  const filesIn = (root: string, at: string, isSkipped: (path: string) => boolean = () => false) =>
    walk(root, at, { isSkipped, leftOut: leaveOut })

  return {
    members,
    leftOut,
    put,
    filesIn,
    async *putAll(...where: Parameters<typeof filesIn>): AsyncGenerator<Buffer> {
      for await (const found of filesIn(...where)) yield* put(found)
    },
    /** the directory itself */
    *putRoom(room: string): Generator<Buffer> {
      const about = lstatSync(room, { throwIfNoEntry: false })
      if (!about?.isDirectory()) return
      const path = basename(room)
      note({ path, kind: 'directory', size: 0, sha256: null })
      yield tarHeader({ ...entryOf(path, 0, about.mtimeMs), kind: 'directory', mode: about.mode & 0o777 })
    },
  }
}

/** (1) */
async function* putPosted(
  archive: Archive,
  layout: Layout,
  waiting: Map<string, Member>,
  claimed: Set<string>,
): AsyncGenerator<Buffer> {
  for await (const found of archive.filesIn(layout.ipc, 'ipc', isNoDrop)) {
    const member = yield* archive.put(found)
    if (member?.kind === 'file') waiting.set(identity(found), member)
  }
  for await (const found of archive.filesIn(layout.spool, 'spool', path => path === 'spool/staging')) {
    yield* archive.put(found)
    if (found.kind === 'file') claimed.add(identity(found))
  }
}

/** (3) */
async function* putRest(
  archive: Archive,
  layout: Layout,
  staging: string,
  options: BackupOptions,
): AsyncGenerator<Buffer> {
  const memory = join(layout.state, 'memory')
  const memories = databasesIn(memory)
  if (memories.length > 0) {
    const copies = join(staging, 'memory')
    mkdirSync(copies, { mode: 0o700 })
    await copyAside(memory, memories, copies)
    yield* archive.putAll(copies, 'state/memory')
  }
  const isPassing = (path: string) => passing.test(path) || (path === 'state/web-token' && !options.token)
  yield* archive.putAll(layout.state, 'state', isPassing)
  yield* archive.putAll(layout.ipc, 'ipc', isDrop)
  yield* archive.putAll(layout.files, 'files')
  if (!options.groups) return
  yield* archive.putAll(layout.groups, 'groups')
  yield* archive.putAll(layout.repos, 'repos')
  yield* archive.putAll(layout.worktrees, 'worktrees')
}

/** A file by what a claim does not change. */
const identity = ({ inode, mtimeMs }: Found) => `${inode}/${Math.round(mtimeMs * 1000)}`

const isDrop = (path: string) => {
  const [, group, directory] = path.split('/')
  return group !== 'errors' && directory !== undefined && possibleDrops.includes(directory)
}
/** Of `ipc` everything but what waits in drops, and the way there. Half-written files and probes are nobody's loss. */
const isNoDrop = (path: string) => {
  const parts = path.split('/')
  if (parts.length <= 2) return path === 'ipc/errors'
  const name = parts[3]
  return !isDrop(path) || (name !== undefined && (!name.endsWith('.json') || name.startsWith('.')))
}

function databasesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter(
      name => name.endsWith('.db') && lstatSync(join(directory, name)).isFile(),
    )
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

async function openFound(found: Found, leftOut: (path: string, why: string) => void) {
  let file: FileHandle | undefined
  try {
    file = await found.open()
    // What was looked at may have been replaced by a pipe or a device.
    if ((await file.stat()).isFile()) return file
    leftOut(found.path, 'it is no longer a file')
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'ENOENT') leftOut(found.path, code)
  }
  await file?.close()
  return undefined
}

const chunkBytes = 262_144

/** As many bytes as were promised: what grows meanwhile is cut off, what shrinks is filled up. */
async function* exactly(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let left = size; left > 0; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(chunkBytes, left)), 0)
    const part = bytesRead === 0 ? Buffer.alloc(Math.min(chunkBytes, left)) : buffer.subarray(0, bytesRead)
    left -= part.length
    yield part
  }
}

const entryOf = (path: string, size: number, mtimeMs: number): TarEntry => ({
  path,
  kind: 'file',
  mode: 0o600,
  size,
  mtimeMs,
  target: '',
})
