import type { Dialect, IncomingFile, Translation } from './dialect.ts'
import { hatchway } from './dialects/hatchway.ts'
import { mdclaw } from './dialects/mdclaw.ts'
import { nanoclaw } from './dialects/nanoclaw.ts'
import { novabot } from './dialects/novabot.ts'
import { pynchy } from './dialects/pynchy.ts'
import { parseStrict, type Undecodable } from './parse.ts'
import { readableType, unknownType } from './refusal-text.ts'
import { requestOf } from './requests.ts'
import type { DialectName } from './snapshots.ts'

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  hatchway,
  nanoclaw,
  novabot,
  mdclaw,
  pynchy,
}

/** The clearer a dialect's marks, the earlier it is asked; NanoClaw's shape is what all the others grew from. */
const mostDistinctFirst = [hatchway, mdclaw, pynchy, novabot, nanoclaw]

/**
 * From a file's text to what it asks for and where the answer goes. All that is used is the text and where it lay: the
 * same file means the same to every host, and to the agent that is about to write it.
 */
export const translate = (
  text: string,
  file: Omit<IncomingFile, 'body'> & { depth: number; mayGrow?: boolean },
): Translation | Undecodable => {
  const parsed = parseStrict(text, file)
  if ('refusal' in parsed) return parsed
  return recognise({ directory: file.directory, sender: file.sender, body: parsed.body })
}

/** Asks each dialect. A file that none of them knows is still refused in the open. */
export const recognise = (file: IncomingFile): Translation => {
  for (const dialect of mostDistinctFirst) {
    const translation = dialect.recognise(file)
    if (translation) return translation
  }
  const { reply, fault } = requestOf(file.body)
  const type = readableType(file.body.type)
  const command = fault ?? unknownType(file.body.type)
  return reply ? { dialect: 'hatchway', type, command, reply } : { dialect: 'hatchway', type, command }
}
