import { chownSync, constants, mkdirSync, unlinkSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type DirectoryHandle, errorCode, type Owner, openDirectory } from '@hatchway/spool'
import { ServiceRefusal } from '../../services/define.ts'
import { writeAll } from './file-store.ts'

/** the directory in a group's folder where the agent finds what people sent */
export const attachmentsDirectory = 'attachments'

const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Puts a file into a folder that belongs to an agent, who may have put a link in the way: the directories are held by
 * their handles, the file is made anew, and what bears its name already is removed, not written to.
 */
export async function putInFolder(
  folder: string,
  name: string,
  content: AsyncIterable<Uint8Array>,
  owner: Owner | undefined,
): Promise<void> {
  const directory = openAttachments(folder, owner)
  try {
    const path = join(directory.path, name)
    const handle = await create(path)
    try {
      if (owner) await handle.chown(owner.uid, owner.gid)
      for await (const chunk of content) await writeAll(handle, chunk)
      await handle.sync()
    } finally {
      await handle.close()
    }
  } finally {
    directory.close()
  }
}

export function removeFromFolder(folder: string, name: string): void {
  const parent = openDirectory(folder)
  if (typeof parent === 'string') return
  const directory = openDirectory(join(parent.path, attachmentsDirectory))
  parent.close()
  if (typeof directory === 'string') return
  try {
    unlinkSync(join(directory.path, name))
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  } finally {
    directory.close()
  }
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, flags, 0o600)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  // Left by a process that was killed, or put there by the agent.
  unlinkSync(path)
  return open(path, flags, 0o600)
}

function openAttachments(folder: string, owner: Owner | undefined): DirectoryHandle {
  const parent = openDirectory(folder)
  if (typeof parent === 'string') {
    throw new ServiceRefusal('wrong_state', 'The group has no folder to put files into.')
  }
  try {
    const path = join(parent.path, attachmentsDirectory)
    const isNew = made(path)
    const directory = openDirectory(path)
    if (typeof directory === 'string') {
      throw new ServiceRefusal(
        'wrong_state',
        `What is called ${attachmentsDirectory} in the group’s folder is no directory. Look at it, then remove it.`,
      )
    }
    if (isNew && owner) chownSync(directory.path, owner.uid, owner.gid)
    return directory
  } finally {
    parent.close()
  }
}

function made(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}
