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

export async function* writeBackup(
  { store, layout, now }: BackupSource,
  options: BackupOptions,
): AsyncGenerator<Buffer> {
  const members: Member[] = []
  const leftOut: Manifest['left_out'] = []
  const madeAt = now().toISOString()
  const staging = mkdtempSync(join(layout.state, stagingPrefix))
  const tell = (path: string, why: string) => void leftOut.push({ path, why })

  const seen = new Set<string>()
  async function* put(found: Found): AsyncGenerator<Buffer> {
    // The way to what was taken before, or a name that came back.
    if (seen.has(found.path)) return
    if (found.kind !== 'file') {
      seen.add(found.path)
      members.push({ path: found.path, kind: found.kind, size: 0, sha256: null })
      yield tarHeader(found)
      return
    }
    const file = await openFound(found, tell)
    if (!file) return
    const hash = createHash('sha256')
    try {
      const { size } = await file.stat()
      yield tarHeader({ ...found, size })
      for await (const part of exactly(file, size)) {
        hash.update(part)
        yield part
      }
      yield padding(size)
      seen.add(found.path)
      members.push({ path: found.path, kind: 'file', size, sha256: hash.digest('hex') })
    } finally {
      await file.close()
    }
  }
  async function* putAll(root: string, at: string, isSkipped: (path: string) => boolean = () => false) {
    for await (const found of walk(root, at, { isSkipped, leftOut: tell })) yield* put(found)
  }
  const last = () => members.at(-1)

  try {
    const rooms = [layout.ipc, layout.spool, layout.state, layout.files]
    if (options.groups) rooms.push(layout.groups, layout.repos, layout.worktrees)
    for (const room of rooms) {
      const about = lstatSync(room, { throwIfNoEntry: false })
      if (!about?.isDirectory()) continue
      const path = basename(room)
      seen.add(path)
      members.push({ path, kind: 'directory', size: 0, sha256: null })
      yield tarHeader({ ...entryOf(path, 0, about.mtimeMs), kind: 'directory', mode: about.mode & 0o777 })
    }
    // What is handled from here on has a larger number.
    const seq = store.lastSeq()
    const waiting = new Map<string, Member>()
    const claimed = new Set<string>()
    for await (const found of walk(layout.ipc, 'ipc', {
      isSkipped: path => isNoDrop(path),
      leftOut: tell,
    })) {
      const isFile = found.kind === 'file'
      yield* put(found)
      const member = last()
      if (isFile && member?.path === found.path) waiting.set(identity(found), member)
    }
    const isStaging = (path: string) => path === 'spool/staging'
    for await (const found of walk(layout.spool, 'spool', { isSkipped: isStaging, leftOut: tell })) {
      yield* put(found)
      if (found.kind === 'file') claimed.add(identity(found))
    }

    const copy = join(staging, 'hatchway.db')
    await store.copyTo(copy)
    const handled = new Set(await settleAside(copy, { seq, keepsSessions: options.token }))
    for (const [key, member] of waiting) {
      if (claimed.has(key) || handled.has(`${member.path.slice('ipc/'.length)}/${key}`)) member.handled = true
    }
    yield* putAll(staging, 'state', path => path !== 'state/hatchway.db')

    const memory = join(layout.state, 'memory')
    const memories = databasesIn(memory)
    if (memories.length > 0) {
      const copies = join(staging, 'memory')
      mkdirSync(copies, { mode: 0o700 })
      await copyAside(memory, memories, copies)
      yield* putAll(copies, 'state/memory')
    }
    yield* putAll(
      layout.state,
      'state',
      path => passing.test(path) || (path === 'state/web-token' && !options.token),
    )
    yield* putAll(layout.ipc, 'ipc', path => isDrop(path))
    yield* putAll(layout.files, 'files')
    if (options.groups) {
      yield* putAll(layout.groups, 'groups')
      yield* putAll(layout.repos, 'repos')
      yield* putAll(layout.worktrees, 'worktrees')
    }
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
      left_out: leftOut,
      members,
    } satisfies Manifest),
  )
  yield tarHeader(entryOf(manifestName, manifest.length, Date.parse(madeAt)))
  yield manifest
  yield padding(manifest.length)
  yield tarEnd
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
