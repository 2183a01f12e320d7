import { lstatSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type DialectName, dialects, type OutgoingFile } from '@hatchway/protocol'
import { type Owner, post } from '@hatchway/spool'
import { empty, openUnlocked, remove } from '../base/remove-tree.ts'
import { textWithFiles } from '../store/attachment-text.ts'
import type { IncomingRow } from '../store/types.ts'

/**
 * The inbox of a running session: follow-ups as files in the group's own directory, in its dialect. Every run begins and
 * ends with an empty inbox, so that nothing of an earlier run reaches a later one; unused messages wait in the store.
 */
export interface InputBox {
  /** the group's own; its inbox and its control files are in it */
  directory: string
  /** `notices`: what the host itself says first */
  post(row: IncomingRow, notices?: readonly string[]): void
  place(file: OutgoingFile): void
  close(): void
  /** asks for the end of the turn; returns how to take that back; undefined: this container cannot be asked */
  interrupt(): (() => void) | undefined
  /** the same, and removes follow-ups that nobody has taken yet */
  stop(): (() => void) | undefined
  /** only while nothing of the group runs */
  clear(): Promise<void>
  /** follow-ups that somebody took out; where a time is given (µs), before that */
  taken(before?: number): readonly string[]
}

/** As the agent knows it, and as its file is called. */
export const inputId = (id: number): string => String(id).padStart(12, '0')

const boxes = ['input', 'inbox', 'control', 'output', 'outbox']

export function createInputBox(options: {
  directory: string
  dialect: DialectName
  staging: string
  owner: Owner | undefined
  timezone: string
  personZone?(row: IncomingRow): string | undefined
  now(): Date
}): InputBox {
  const { directory, dialect, staging, owner, timezone, now } = options
  const posted = new Map<string, string>()
  const gone = new Map<string, number>()

  const place = (file: OutgoingFile) => {
    const [box = '', name = ''] = file.path.split('/')
    post(join(directory, box), file.content, { name, staging, mode: 0o600, owner })
  }

  /** A directory changes when a name goes out of it: asked afterwards, its time is never earlier than that. */
  const scan = () => {
    for (const [id, path] of posted) {
      if (isThere(join(directory, path))) continue
      posted.delete(id)
      const box = lstatSync(join(directory, dirname(path)), { throwIfNoEntry: false })
      gone.set(id, Math.round((box?.mtimeMs ?? 0) * 1000))
    }
  }

  const removeFile = (path: string) => {
    const box = openUnlocked(join(directory, dirname(path)))
    if (!box) return
    try {
      remove(Buffer.from(`${box.path}/${basename(path)}`))
    } finally {
      box.close()
    }
  }
  const request = (file: OutgoingFile | undefined): (() => void) | undefined => {
    if (!file) return undefined
    place(file)
    return () => removeFile(file.path)
  }

  return {
    directory,
    post(row, notices = []) {
      // What we put in changes the directory's time, too.
      scan()
      const zone = options.personZone?.(row)
      const file = dialects[dialect].input(
        {
          text: textWithFiles(row),
          sender: row.sender,
          sender_name: row.senderName,
          timestamp: new Date(row.createdAt).toISOString(),
          ...(zone !== undefined && zone !== timezone && { timezone: zone }),
        },
        inputId(row.id),
        { timezone, notices },
      )
      place(file)
      posted.set(inputId(row.id), file.path)
    },
    place,
    close: () => place(dialects[dialect].close(now().toISOString())),
    interrupt: () => request(dialects[dialect].interrupt?.(now().toISOString())),
    stop() {
      for (const path of posted.values()) removeFile(path)
      posted.clear()
      const { interrupt, stop = interrupt } = dialects[dialect]
      return request(stop?.(now().toISOString()))
    },
    async clear() {
      posted.clear()
      gone.clear()
      for (const box of boxes) await empty(join(directory, box))
    },
    taken(before = Number.POSITIVE_INFINITY) {
      scan()
      return [...gone].filter(([, at]) => at < before).map(([id]) => id)
    },
  }
}

/** In a directory that its owner has locked, what we put there is still there. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error) return true
    throw error
  }
}
