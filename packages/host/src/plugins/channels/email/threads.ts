import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import type { Letter } from './mail.ts'

/**
 * What an answer needs to appear below the mail that it answers: the thread's subject and the mails in it. It is kept in a
 * fixed number of slots, each for a few threads, the oldest of which goes: what people keep writing can be as much as they like.
 */
export interface Threads {
  /** notes a mail that has come */
  follow(letter: Letter): void
  /** undefined: it is too long ago */
  find(jid: string, root: string): Thread | undefined
}

const slots = 1024
const perSlot = 8
/** as many as fit into a header that every server takes */
const mostReferences = 12

const threadSchema = z.object({
  jid: z.string(),
  root: z.string(),
  subject: z.string(),
  /** the first mail and the last ones */
  references: z.array(z.string()),
})
type Thread = z.output<typeof threadSchema>

/** A thread is called by its first mail. */
export const rootOf = ({ references, id }: Letter): string => references[0] ?? id

export function createThreads(memory: Pick<ChannelHost, 'recall' | 'remember'>): Threads {
  // With the chat: whoever names another chat's mail does not get into its thread.
  const slotOf = (jid: string, root: string) =>
    `thread:${createHash('sha256').update(`${jid} ${root}`).digest().readUInt16BE() % slots}`
  const read = (slot: string) => z.array(threadSchema).parse(JSON.parse(memory.recall(slot) ?? '[]'))
  const isSame = (jid: string, root: string) => (one: Thread) => one.jid === jid && one.root === root

  return {
    follow(letter) {
      const { jid, subject, id } = letter
      const root = rootOf(letter)
      const slot = slotOf(jid, root)
      const all = [...new Set([...letter.references, id])]
      const references = all.length <= mostReferences ? all : [root, ...all.slice(1 - mostReferences)]
      const others = read(slot).filter(one => !isSame(jid, root)(one))
      memory.remember(slot, JSON.stringify([{ jid, root, subject, references }, ...others].slice(0, perSlot)))
    },
    find: (jid, root) => read(slotOf(jid, root)).find(isSame(jid, root)),
  }
}
