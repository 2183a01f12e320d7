import { randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Layout } from '../../base/layout.ts'
import type { Owners } from '../../base/owners.ts'
import type { Work } from '../../commands/service-tools.ts'
import type { Config } from '../../config.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { headBytes, typeOf } from '../../store/attachment-type.ts'
import type { Attachment, FileRow, Store } from '../../store/types.ts'
import { createAttachmentFiles } from './file-store.ts'
import { attachmentsDirectory, putInFolder, removeFromFolder } from './give.ts'
import { shownName, storedName } from './names.ts'
import { createSendWork, type SendOptions } from './send.ts'

/** Files that go along with messages, both ways. The host keeps a copy of its own of each, for people to look at. */
export interface Attachments {
  /** the largest file */
  limit: number
  /** what an agent's message with files is done by */
  work: Work
  /** takes what a person is about to send, as it comes in */
  receive(group: Group, name: string, content: AsyncIterable<Uint8Array>): Promise<Attachment>
  /**
   * Puts files that a person sent into the group's folder, where its agent finds them. `takeBack` for what was not said
   * after all.
   */
  give(
    group: Group,
    ids: readonly string[],
  ): Promise<{ attachments: readonly Attachment[]; takeBack(): void }>
  /**
   * Puts into the group's folder what its agent is to have and no message has; where it finds it. It counts as the
   * group's other files do, and is removed after a week, or earlier if room is needed.
   */
  leave(folder: string, name: string, content: Buffer): Promise<string>
  /** undefined: it is not kept, or its chat is not there */
  open(id: string): Promise<{ file: FileRow; handle: FileHandle } | undefined>
  /** undefined: it is not kept */
  read(id: string): Promise<Buffer | undefined>
  start(): void
  stop(): void
}

export interface AttachmentsOptions
  extends Pick<SendOptions, 'positions' | 'findSecrets' | 'apply' | 'fault' | 'now'> {
  config: Pick<Config, 'limits' | 'keep'>
  layout: Layout
  store: Store
  owners: Owners
  /** where the group's agent sees its folder */
  placeOf(folder: string): string
  log: Logger
}

const sweepMs = 3_600_000
/** what somebody had uploaded and not said */
const unsaidMs = 86_400_000
/** what an agent was given to read, and had time to move to where it wants to keep it */
const leftMs = 7 * 86_400_000

const isLeft = ({ direction, message }: FileRow): boolean => direction === 'out' && message === null

export function createAttachments(options: AttachmentsOptions): Attachments {
  const { config, layout, store, owners, log, now } = options
  const fileStore = createAttachmentFiles(layout.files)
  const limit = config.limits.attachmentBytes
  const space = config.keep.fileBytes
  const folderOf = (group: string) => join(layout.groups, group)
  let sweeping: NodeJS.Timeout | undefined

  /** What is in the way there belongs to an agent, and must not keep the other files. */
  const takeAway = (files: readonly FileRow[]) => {
    for (const { id, name, group } of files) {
      try {
        removeFromFolder(folderOf(group), storedName(id, name))
      } catch (error) {
        log.warn({ err: error, group }, 'an old file in the group’s folder could not be removed')
      }
    }
  }

  const makeRoom = async (group: string, bytes: number) => {
    const forgotten = store.files.trim(group, Math.max(0, space - bytes))
    takeAway(forgotten.filter(isLeft))
    await fileStore.drop(forgotten.filter(file => !isLeft(file)).map(({ id }) => id))
    if (store.files.total(group) + bytes > space) {
      throw new ServiceRefusal(
        'quota_exceeded',
        `The group’s files may take ${space} bytes in all, and the older ones are not delivered yet.`,
      )
    }
  }

  const sweep = () => {
    try {
      takeAway(store.files.prune({ unsaid: now() - unsaidMs, left: now() - leftMs }))
      fileStore.sweep(id => store.files.file(id) !== undefined)
    } catch (error) {
      log.error({ err: error }, 'old files could not be removed; it is tried again in an hour')
    }
  }

  const work = createSendWork({
    ...options,
    fileStore,
    limit,
    folderOf: group => ({ path: folderOf(group), reader: owners(group) }),
    makeRoom,
  })

  const contentOf = async (id: string): Promise<FileHandle> => {
    const handle = await fileStore.open(id)
    if (!handle) throw new ServiceRefusal('not_found', 'This file is no longer kept: choose it again.')
    return handle
  }

  return {
    limit,
    work,
    async receive(group, given, content) {
      const { id, type, bytes } = await fileStore.make(content, limit)
      try {
        await makeRoom(group.folder, bytes)
        const file = { id, name: shownName(given), type, bytes }
        const { folder, jid } = group
        store.files.insert({ ...file, group: folder, jid, direction: 'in', message: null, createdAt: now() })
        fileStore.keep([id])
        return file
      } catch (error) {
        await fileStore.drop([id])
        throw error
      }
    },
    async give(group, ids) {
      const folder = folderOf(group.folder)
      const attachments: Attachment[] = []
      const stored: string[] = []
      const takeBack = () => {
        for (const name of stored) removeFromFolder(folder, name)
      }
      try {
        for (const id of ids) {
          const file = store.files.file(id)
          if (file?.direction !== 'in' || file.group !== group.folder || file.jid !== group.jid) {
            throw new ServiceRefusal('not_found', 'There is no such file in this chat: choose it again.')
          }
          const { name, type, bytes } = file
          const storedAs = storedName(id, name)
          const handle = await contentOf(id)
          stored.push(storedAs)
          try {
            await putInFolder(
              folder,
              storedAs,
              handle.createReadStream({ autoClose: false }),
              owners(group.folder),
            )
          } finally {
            await handle.close()
          }
          const path = [options.placeOf(group.folder), attachmentsDirectory, storedAs].join('/')
          attachments.push({ id, name, type, bytes, path })
        }
      } catch (error) {
        takeBack()
        throw error
      }
      return { attachments, takeBack }
    },
    async leave(folder, name, content) {
      const group = store.group(folder)
      if (!group) throw new ServiceRefusal('not_found', 'This group is no longer there.')
      const file = { id: randomBytes(12).toString('hex'), name: shownName(name) }
      const bytes = content.length
      const storedAs = storedName(file.id, file.name)
      await makeRoom(folder, bytes)
      // Before it is written: many at once are counted, and what a process that was killed had written is found.
      const about = {
        group: folder,
        jid: group.jid,
        direction: 'out',
        message: null,
        createdAt: now(),
      } as const
      store.files.insert({ ...file, ...about, type: typeOf(content.subarray(0, headBytes)), bytes })
      try {
        await putInFolder(folderOf(folder), storedAs, Readable.from([content]), owners(folder))
      } catch (error) {
        takeAway([{ ...file, ...about, type: '', bytes }])
        store.files.remove(file.id)
        throw error
      }
      return [options.placeOf(folder), attachmentsDirectory, storedAs].join('/')
    },
    async open(id) {
      const file = store.files.file(id)
      if (!file || !store.groups().some(({ jid }) => jid === file.jid)) return undefined
      const handle = await fileStore.open(id)
      return handle && { file, handle }
    },
    async read(id) {
      const handle = await fileStore.open(id)
      return handle?.readFile().finally(() => handle.close())
    },
    start() {
      sweep()
      sweeping = setInterval(sweep, sweepMs).unref()
    },
    stop: () => clearInterval(sweeping),
  }
}
