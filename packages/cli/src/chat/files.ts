import { createWriteStream, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Client, EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import { bytes } from '../format.ts'
import { url } from '../session.ts'
import { visible } from '../text.ts'

/** A line for each attachment; `mark` says how it can be saved. */
export const attachmentLines = (
  { attachments = [] }: EntryAnswer,
  mark: (file: FileAnswer) => string,
): string[] =>
  attachments.map(file => {
    const about = `${visible(file.name)}, ${visible(file.type)}, ${bytes(file.bytes)}`
    return file.gone ? `(file no longer kept: ${about})` : `(file ${mark(file)}: ${about})`
  })

export const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** What follows `/attach`: a path, alone or in quotes, and a text to send with it. */
export function parseAttach(given: string): { path: string; text: string } {
  const whole = given.trim()
  if (isFile(whole)) return { path: whole, text: '' }
  const [, quoted, plain, text = ''] = /^(?:"([^"]*)"|(\S+))\s*(.*)$/s.exec(whole) ?? []
  return { path: quoted ?? plain ?? '', text }
}

/** Saves an attachment and returns its path. An existing file is not overwritten. */
export async function saveFile(client: Client, id: string, to: string, name: string): Promise<string> {
  const isDirectory = statSync(to, { throwIfNoEntry: false })?.isDirectory() === true
  const path = isDirectory ? join(to, basename(name)) : to
  const content = await client.download(url`/api/files/${id}`)
  try {
    await pipeline(content, createWriteStream(path, { flags: 'wx' }))
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : 'unknown reason'
    throw new Failure(`${path} could not be written: ${reason}`)
  }
  return path
}
