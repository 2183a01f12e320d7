import { createHash, randomBytes } from 'node:crypto'
import { constants, readdirSync, unlinkSync } from 'node:fs'
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '@hatchway/spool'
import { ServiceRefusal } from '../../services/define.ts'
import { headBytes, typeOf } from '../../store/attachment-type.ts'

interface Copy {
  id: string
  type: string
  bytes: number
  /** of its content */
  sha256: string
}

/**
 * The host's copies of files: in a directory that is in no mount, each under a name of ours. A copy is
 *
 * - being made, under a temporary name;
 * - made, and known only here, until its row is stored (`keep`) or nobody wants it (`drop`);
 * - kept, for as long as the store has a row of it.
 *
 * What a process that ended had made and not stored is found by `sweep`, as is what the store has forgotten.
 */
export interface AttachmentFiles {
  /** refuses what is larger than the limit while it comes in */
  make(content: AsyncIterable<Uint8Array>, limit: number): Promise<Copy>
  keep(ids: readonly string[]): void
  drop(ids: readonly string[]): Promise<void>
  /** undefined: there is none */
  open(id: string): Promise<FileHandle | undefined>
  /** removes what the store does not know */
  sweep(isKnown: (id: string) => boolean): void
}

const temporary = '.part'
const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
const idPattern = /^[0-9a-f]{24}$/

export function createAttachmentFiles(directory: string): AttachmentFiles {
  const fresh = new Set<string>()
  const pathOf = (id: string) => join(directory, id)

  const write = async (path: string, content: AsyncIterable<Uint8Array>, limit: number) => {
    const head: Uint8Array[] = []
    let headed = 0
    let bytes = 0
    const hash = createHash('sha256')
    const handle = await open(path, flags, 0o600)
    try {
      for await (const chunk of content) {
        bytes += chunk.length
        if (bytes > limit) throw new ServiceRefusal('too_large', `A file may have ${limit} bytes.`)
        if (headed < headBytes) {
          // The source may use its memory again.
          head.push(Uint8Array.prototype.slice.call(chunk, 0, headBytes - headed))
          headed += chunk.length
        }
        hash.update(chunk)
        await writeAll(handle, chunk)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    return { bytes, type: typeOf(Buffer.concat(head)), sha256: hash.digest('hex') }
  }

  return {
    async make(content, limit) {
      const id = randomBytes(12).toString('hex')
      const path = pathOf(id)
      fresh.add(id)
      try {
        const written = await write(path + temporary, content, limit)
        await rename(path + temporary, path)
        await syncDirectory(directory)
        return { id, ...written }
      } catch (error) {
        await remove(path + temporary)
        await remove(path)
        fresh.delete(id)
        throw error
      }
    },
    keep(ids) {
      for (const id of ids) fresh.delete(id)
    },
    async drop(ids) {
      for (const id of ids) {
        await remove(pathOf(id))
        fresh.delete(id)
      }
    },
    async open(id) {
      if (!idPattern.test(id)) return undefined
      try {
        return await open(pathOf(id), constants.O_RDONLY | constants.O_NOFOLLOW)
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return undefined
        throw error
      }
    },
    sweep(isKnown) {
      for (const name of readdirSync(directory)) {
        const id = name.endsWith(temporary) ? name.slice(0, -temporary.length) : name
        if (fresh.has(id) || (name === id && isKnown(id))) continue
        unlinkSync(join(directory, name))
      }
    },
  }
}

export async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await handle.write(chunk, written, chunk.length - written)).bytesWritten
  }
}

async function remove(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Not every file system lets a directory be synced; its own journal has to do then. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await handle.sync()
  } catch (error) {
    if (errorCode(error) !== 'EINVAL') throw error
  } finally {
    await handle.close()
  }
}
