import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type DialectName, dialects, type OutgoingFile } from '@hatchway/protocol'
import { type Owner, pinDirectory, post } from '@hatchway/spool'
import type { IncomingRow } from '../store/agent-types.ts'

/**
 * The way into a running session: follow-ups as files in the group's own directory, in its dialect. Every run begins and
 * ends with an empty one, so that nothing of an earlier run reaches a later one (lesson 21); what was in it unused is in
 * the store, and waits there.
 */
export interface InputBox {
  post(row: IncomingRow): void
  place(file: OutgoingFile): void
  close(): void
  clear(): void
  /** follow-ups that are no longer there: somebody took them */
  taken(): readonly string[]
}

/** As the agent knows it, and as its file is called. */
export const inputId = (id: number): string => String(id).padStart(12, '0')

const boxes = ['input', 'inbox', 'control']

export function createInputBox(options: {
  directory: string
  dialect: DialectName
  staging: string
  owner: Owner | undefined
  now(): Date
}): InputBox {
  const { directory, dialect, staging, owner, now } = options
  const posted = new Map<string, string>()

  const place = (file: OutgoingFile) => {
    const [box = '', name = ''] = file.path.split('/')
    post(join(directory, box), file.content, { name, staging, mode: 0o600, owner })
  }

  return {
    post(row) {
      const file = dialects[dialect].input(
        {
          text: row.text,
          sender: row.sender,
          sender_name: row.senderName,
          timestamp: new Date(row.createdAt).toISOString(),
        },
        inputId(row.id),
      )
      place(file)
      posted.set(inputId(row.id), file.path)
    },
    place,
    close: () => place(dialects[dialect].close(now().toISOString())),
    clear() {
      posted.clear()
      for (const box of boxes) empty(join(directory, box))
    },
    taken() {
      const gone = [...posted].filter(([, path]) => !isThere(join(directory, path))).map(([id]) => id)
      for (const id of gone) posted.delete(id)
      return gone
    },
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/** By its handle, and never through a link: the directory is the container's to change. */
function empty(path: string): void {
  const directory = pinDirectory(path)
  if (typeof directory === 'string') return
  try {
    for (const name of readdirSync(directory.path)) {
      const entry = join(directory.path, name)
      if (!lstatSync(entry, { throwIfNoEntry: false })?.isDirectory()) unlinkSync(entry)
    }
  } finally {
    directory.close()
  }
}
