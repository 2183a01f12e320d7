import type { Dialect, IncomingFile, Translation } from './dialect.ts'
import { hatchway } from './dialects/hatchway.ts'
import { mdclaw } from './dialects/mdclaw.ts'
import { nanoclaw } from './dialects/nanoclaw.ts'
import { novabot } from './dialects/novabot.ts'
import { pynchy } from './dialects/pynchy.ts'
import { requestOf } from './requests.ts'
import type { DialectName } from './snapshots.ts'
import { readableType, unknownType } from './validate.ts'

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  hatchway,
  nanoclaw,
  novabot,
  mdclaw,
  pynchy,
}

/** The clearer a dialect's marks, the earlier it is asked; NanoClaw's shape is what all the others grew from. */
const mostDistinctFirst = [hatchway, mdclaw, pynchy, novabot, nanoclaw]

/** What a file asks for, and where the answer goes. A file that no dialect knows is still refused in the open. */
export const translate = (file: IncomingFile): Translation => {
  for (const dialect of mostDistinctFirst) {
    const translation = dialect.recognise(file)
    if (translation) return translation
  }
  const { reply, fault } = requestOf(file.body)
  const type = readableType(file.body.type)
  const command = fault ?? unknownType(file.body.type)
  return reply ? { dialect: 'hatchway', type, command, reply } : { dialect: 'hatchway', type, command }
}
