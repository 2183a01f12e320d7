import { constants, lstatSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { ErrorCode } from '@hatchway/protocol'
import { type DirectoryHandle, errorCode, type Owner, openDirectory } from '@hatchway/spool'
import { inside } from '../../sandboxes/mounts.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { quotedPath } from './names.ts'

/**
 * Files out of a folder that an agent writes to. It may put links, pipes and devices there, and change all of it while
 * we look: so no link is followed at any place of the path, each directory is held by its handle while the next is
 * opened in it, and only a regular file with one name is read.
 */
export interface Folder {
  /** on the host */
  path: string
  /** whom the agent runs as: what it may not read is not read for it; undefined: as we do */
  reader: Owner | undefined
}

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const chunkBytes = 262_144
const longestName = 255

const refuse = (code: ErrorCode, path: string, why: string) =>
  new ServiceRefusal(code, `${quotedPath(path)} ${why}`)

/** The names on the way to it, from the group's folder on. Relative to that, or as the agent or we see it. */
function namesOn(path: string, folder: Folder): string[] {
  const bases = [inside.group, folder.path]
  const base = bases.find(each => path.startsWith(`${each}/`))
  const relative = base === undefined ? path : path.slice(base.length + 1)
  const names = relative.split('/').filter(name => name !== '' && name !== '.')
  if (relative.startsWith('/') || relative.includes('\0') || names.includes('..')) {
    throw refuse('invalid_field', path, 'is not a path in the group’s folder.')
  }
  if (names.length === 0) throw refuse('not_a_file', path, 'is a directory.')
  return names
}

export interface Taken {
  /** its own */
  name: string
  bytes: number
  /** refuses, in the middle, a file that is changed meanwhile */
  content: AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export async function takeFile(folder: Folder, path: string, limit: number): Promise<Taken> {
  const names = namesOn(path, folder)
  const last = names.pop() ?? ''
  let handle: FileHandle
  let before: Stats
  const directory = descend(folder, names, path)
  try {
    ;({ handle, before } = await openFile(directory, last, folder.reader, path))
  } finally {
    directory.close()
  }
  if (before.size > limit) {
    await handle.close()
    throw refuse('too_large', path, `has ${before.size} bytes; a file that is sent may have ${limit}.`)
  }
  return {
    name: last,
    bytes: before.size,
    content: contentOf(handle, before, path),
    close: () => handle.close(),
  }
}

function descend({ path: root, reader }: Folder, names: readonly string[], path: string): DirectoryHandle {
  const first = openDirectory(root)
  if (typeof first === 'string') throw refuse('not_found', path, 'is not there: the group has no folder.')
  let here: DirectoryHandle = first
  for (const name of names) {
    const inner = name.length > longestName ? 'missing' : openDirectory(join(here.path, name))
    here.close()
    if (typeof inner === 'string') {
      throw inner === 'not_a_directory'
        ? refuse('not_a_file', path, `leads through ${quotedPath(name)}, which is a link or no directory.`)
        : refuse('not_found', path, 'is not there.')
    }
    if (!isPermitted(statSync(inner.path), reader, 0o1)) {
      inner.close()
      throw refuse('not_found', path, 'is not there for the agent to read.')
    }
    here = inner
  }
  return here
}

async function openFile(
  directory: DirectoryHandle,
  name: string,
  reader: Owner | undefined,
  path: string,
): Promise<{ handle: FileHandle; before: Stats }> {
  const at = join(directory.path, name)
  let handle: FileHandle | undefined
  try {
    // Looked at first, as opening a device can have effects.
    const outside = lstatSync(at)
    checkKind(outside, path)
    handle = await open(at, flags)
    const before = await handle.stat()
    checkKind(before, path)
    if (!isPermitted(before, reader, 0o4)) {
      throw refuse('not_found', path, 'is not there for the agent to read.')
    }
    return { handle, before }
  } catch (error) {
    await handle?.close()
    if (error instanceof ServiceRefusal) throw error
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENAMETOOLONG') throw refuse('not_found', path, 'is not there.')
    if (code === 'ELOOP') throw refuse('not_a_file', path, 'is a link.')
    throw refuse('not_found', path, `cannot be opened (${code}).`)
  }
}

function checkKind(found: Stats, path: string): void {
  if (found.isSymbolicLink()) throw refuse('not_a_file', path, 'is a link.')
  if (!found.isFile()) throw refuse('not_a_file', path, 'is not a regular file.')
  // By another name it may lie where the agent cannot read.
  if (found.nlink !== 1)
    throw refuse('not_a_file', path, 'has more than one name (a hard link). Copy it first.')
}

/** Whether somebody else may, as the kernel would decide for them: a host that is root could. */
function isPermitted({ uid, gid, mode }: Stats, reader: Owner | undefined, right: 0o1 | 0o4): boolean {
  if (!reader || reader.uid === 0) return true
  const shift = uid === reader.uid ? 6 : gid === reader.gid ? 3 : 0
  return (mode & (right << shift)) !== 0
}

/** As much as there was when it was opened, and no file that is being written. */
async function* contentOf(handle: FileHandle, before: Stats, path: string): AsyncGenerator<Uint8Array> {
  const changed = refuse('conflict', path, 'was changed while it was copied. Send it once it is finished.')
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let read = 0
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, read)
    if (bytesRead === 0) break
    read += bytesRead
    if (read > before.size) throw changed
    yield buffer.subarray(0, bytesRead)
  }
  const after = await handle.stat()
  if (read !== before.size || after.size !== before.size || after.mtimeMs !== before.mtimeMs) throw changed
}
