import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { ChatAnswer, Client, EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import { visible } from '../text.ts'

/** Files that go along with what is said, from and to this machine's own. */

const units = ['kB', 'MB', 'GB']
function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`
  let size = bytes
  let unit = -1
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}

/** A line for each file; `mark` is what it can be saved by. */
export const filesOf = ({ attachments = [] }: EntryAnswer, mark: (file: FileAnswer) => string): string[] =>
  attachments.map(file => {
    const about = `${visible(file.name)}, ${visible(file.type)}, ${sizeOf(file.bytes)}`
    return file.gone ? `(file no longer kept: ${about})` : `(file ${mark(file)}: ${about})`
  })

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** What stands behind `/attach`: a path, alone or in quotes, and what to say with it. */
export function parseAttach(rest: string): { path: string; text: string } {
  const whole = rest.trim()
  if (isFile(whole)) return { path: whole, text: '' }
  const [, quoted, plain, text = ''] = /^(?:"([^"]*)"|(\S+))\s*(.*)$/s.exec(whole) ?? []
  return { path: quoted ?? plain ?? '', text }
}

export async function upload(
  client: Client,
  api: typeof import('@hatchway/host/api'),
  room: ChatAnswer,
  path: string,
): Promise<FileAnswer> {
  if (!isFile(path)) throw new Failure(`${path} is not a file that can be sent.`)
  const name = encodeURIComponent(basename(path))
  const address = `/api/chats/${encodeURIComponent(room.jid)}/files?name=${name}`
  return client.upload(address, createReadStream(path), api.fileAnswer)
}

/** Nothing that is there already is overwritten. The path it was saved under. */
export async function save(client: Client, id: string, to: string, name: string): Promise<string> {
  const isDirectory = statSync(to, { throwIfNoEntry: false })?.isDirectory() === true
  const path = isDirectory ? join(to, basename(name)) : to
  const content = await client.download(`/api/files/${encodeURIComponent(id)}`)
  try {
    await pipeline(content, createWriteStream(path, { flags: 'wx' }))
  } catch (error) {
    throw new Failure(
      `${path} could not be written: ${error instanceof Error && 'code' in error ? error.code : 'no reason'}`,
    )
  }
  return path
}
