import { type Outcome, payloads } from '@hatchway/protocol'
import { errorCode } from '@hatchway/spool'
import { z } from 'zod'
import type { Fault } from '../../base/fault.ts'
import { createWorkQueue } from '../../base/keyed-queue.ts'
import { done } from '../../base/outcome.ts'
import type { Effect } from '../../commands/effects.ts'
import { quoted, sendMessage } from '../../commands/messages.ts'
import { authorise } from '../../commands/registry.ts'
import type { Work, WorkContext } from '../../commands/service-tools.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Positions } from '../../store/positions.ts'
import type { Attachment, Store } from '../../store/types.ts'
import { type EvidenceOptions, evidenceOf, isSearched } from './evidence.ts'
import type { AttachmentFiles } from './file-store.ts'
import { quotedPath, shownName } from './names.ts'
import { takeFile } from './take.ts'

export interface SendOptions extends EvidenceOptions {
  store: Store
  positions: Positions
  fileStore: AttachmentFiles
  /** throws where so many bytes are more than the group may have kept */
  makeRoom(group: string, bytes: number): Promise<void>
  apply(effects: readonly Effect[]): void
  fault: Fault
  now(): number
}

/** What a message with files is, between its command and the end of the copying. */
const inputSchema = payloads.send_message.required({ jid: true, attachments: true }).extend({
  /** the files as they were when somebody looked at them, and when they were searched */
  approved: z.object({ attachments: z.array(z.object({ sha256: z.string() })) }).optional(),
})
type Input = z.infer<typeof inputSchema>

/** Long: what was accepted outlives a host that is down for a while. */
const timeoutMs = 3_600_000

/**
 * A message with files. They are copied first, beside everything else; then the message, its files and the answer to
 * the request become durable together, so that after a crash it is either all done, or done again from the beginning.
 */
export function createSendWork(options: SendOptions): Work {
  const { store, fileStore, now } = options
  /** by group: one message at a time, so that what is being copied is bounded too */
  const queue = createWorkQueue()

  const copy = async (
    { attachments, approved }: Input,
    { group, signal }: WorkContext,
    copies: Attachment[],
  ) => {
    for (const [i, { path, name }] of attachments.entries()) {
      signal.throwIfAborted()
      const file = await takeFile(options.folderOf(group.folder), path, options.limit)
      try {
        const copied = copies.reduce((sum, { bytes }) => sum + bytes, 0)
        await options.makeRoom(group.folder, copied + file.bytes)
        const { id, type, bytes, sha256 } = await fileStore.make(file.content, file.bytes)
        copies.push({ id, name: shownName(name ?? file.name), type, bytes })
        if (approved && approved.attachments[i]?.sha256 !== sha256) {
          throw new ServiceRefusal(
            'conflict',
            `${quotedPath(path)} is not the file that was approved: it has changed since. Ask again.`,
          )
        }
      } finally {
        await file.close()
      }
    }
  }

  /** What leaves the group is searched like its words are. The copies are: nobody can change them any longer. */
  const search = async (
    { jid, approved }: Input,
    { group, signal, requestId }: WorkContext,
    copies: readonly Attachment[],
  ) => {
    const { findSecrets } = options
    // The same content was searched before somebody decided.
    if (!findSecrets || approved || jid === group.jid) return
    for (const { id, name, type, bytes } of copies) {
      if (!isSearched({ type, bytes })) continue
      const handle = await fileStore.open(id)
      const text = await handle?.readFile('utf8').finally(() => handle.close())
      const [secret] = await findSecrets({ text }, { group: group.folder, signal })
      if (!secret) continue
      const reason = `The file ${quotedPath(name)} holds what looks like a secret (${secret.kind}).`
      store.audit.append({
        at: now(),
        group: group.folder,
        actor: 'agent',
        decidedBy: 'host',
        action: 'send_message',
        summary: `send ${quotedPath(name)} to the chat ${jid}`,
        gate: 'block',
        outcome: 'denied',
        reason,
        requestId,
      })
      throw new ServiceRefusal('denied', `${reason} It is not sent to another chat.`)
    }
  }

  const send = async (input: Input, context: WorkContext): Promise<Outcome> => {
    const copies: Attachment[] = []
    let outcome: Outcome | undefined
    try {
      await copy(input, context, copies)
      await search(input, context, copies)
      options.fault('copied')
      outcome = commit(options, input, context, copies)
    } catch (error) {
      await fileStore.drop(copies.map(({ id }) => id))
      if (error instanceof ServiceRefusal || context.signal.aborted) throw error
      // What the system says about our own directories is not for an agent.
      context.log.error({ err: error }, 'files could not be sent')
      throw new ServiceRefusal('internal', `The files could not be copied (${errorCode(error)}).`)
    }
    const ids = copies.map(({ id }) => id)
    if (!outcome) {
      await fileStore.drop(ids)
      throw new ServiceRefusal('cancelled', 'The request was taken back.')
    }
    options.fault('attached')
    fileStore.keep(ids)
    options.apply([{ kind: 'request_over', seq: context.seq, outcome }, { kind: 'message_queued' }])
    return outcome
  }

  return {
    name: 'send_message',
    repeatable: true,
    timeoutMs,
    evidence: (given, context) => evidenceOf(given, context, options),
    async call(given, context) {
      const input = inputSchema.parse(given)
      const outcome = await queue.run(context.group.folder, context.signal, () => send(input, context))
      return outcome.ok ? outcome.result : {}
    },
  }
}

/** The message, its files and the answer to the request; undefined: the request was over. */
function commit(
  { store, positions, now }: SendOptions,
  input: Input,
  context: WorkContext,
  copies: readonly Attachment[],
): Outcome | undefined {
  const { folder } = context.group
  const at = now()
  return store.transaction(transaction => {
    const group = transaction.group(folder)
    if (!group) throw new ServiceRefusal('cancelled', 'The group is no longer registered.')
    const notAllowed = authorise(sendMessage, { kind: 'group', group }, { jid: input.jid })
    if (notAllowed) throw new ServiceRefusal(notAllowed.error.code, notAllowed.error.message)
    const quote = quoted(input.reply_to, { folder, jid: input.jid }, transaction)
    if (!quote.ok) throw new ServiceRefusal(quote.error.code, quote.error.message)
    const id = positions.next()
    const outcome = done({
      message_id: String(id),
      status: 'queued',
      attachments: copies.map(({ name, type, bytes }) => ({ name, type, bytes })),
    })
    // It was taken back, or its time was up.
    if (!transaction.answerRequest(context.seq, outcome, at)) return undefined
    const { jid, text, sender = null, speech = null } = input
    const words = { author: 'agent', kind: 'text', text, sender, speech, messageId: null } as const
    transaction.insertMessage({
      ...{ id, group: folder, jid, ...words, ...quote.answers },
      ...{ attachments: copies, createdAt: at },
    })
    for (const file of copies) {
      transaction.insertFile({ ...file, group: folder, jid, direction: 'out', message: id, createdAt: at })
    }
    transaction.audit({
      at,
      group: folder,
      actor: 'agent',
      decidedBy: 'host',
      action: 'send_message',
      summary: `sent ${copies.length === 1 ? 'a file' : `${copies.length} files`} to the chat ${jid}`,
      outcome: 'noted',
      requestId: context.requestId,
      details: { message: id, files: copies.map(({ name, type, bytes }) => ({ name, type, bytes })) },
    })
    return outcome
  })
}
