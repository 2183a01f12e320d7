import { createHash } from 'node:crypto'
import { type Outcome, payloads } from '@hatchway/protocol'
import { errorCode } from '@hatchway/spool'
import { z } from 'zod'
import type { Fault } from '../../base/fault.ts'
import { done } from '../../base/outcome.ts'
import { authorise } from '../../commands/policy/permissions.ts'
import type { Evidence, EvidenceContext, Work, WorkContext } from '../../commands/service-tools.ts'
import type { Effect } from '../../commands/types.ts'
import type { SecretSearch } from '../../guard/secrets/search.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { headBytes, typeOf } from '../../store/attachment-type.ts'
import type { Attachment } from '../../store/file-types.ts'
import type { Positions } from '../../store/positions.ts'
import type { Store } from '../../store/types.ts'
import type { AttachmentFiles } from './file-store.ts'
import { quoted, shownName } from './names.ts'
import { type Folder, type Taken, takeFile } from './take.ts'

export interface SendOptions {
  store: Store
  positions: Positions
  shelf: AttachmentFiles
  /** of one file */
  limit: number
  folderOf(group: string): Folder
  /** throws where so many bytes are more than the group may have kept */
  makeRoom(group: string, bytes: number): Promise<void>
  /** left out: nothing is guarded */
  findSecrets?: SecretSearch['findSecrets'] | undefined
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
/** of a text that is searched for secrets */
const searchedBytes = 1_048_576

/**
 * A message with files. They are copied first, beside everything else; then the message, its files and the answer to
 * the request become durable together, so that after a crash it is either all done, or done again from the beginning.
 */
export function createSendWork(options: SendOptions): Work {
  const { store, shelf, now } = options
  /** by group: one message at a time, so that what is being copied is bounded too */
  const turns = new Map<string, Promise<void>>()

  const inTurn = async <T>(group: string, work: () => Promise<T>): Promise<T> => {
    const before = turns.get(group) ?? Promise.resolve()
    const working = before.then(work)
    const ended = working.then(
      () => {},
      () => {},
    )
    turns.set(group, ended)
    try {
      return await working
    } finally {
      if (turns.get(group) === ended) turns.delete(group)
    }
  }

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
        const { id, type, bytes, sha256 } = await shelf.make(file.content, file.bytes)
        copies.push({ id, name: shownName(name ?? file.name), type, bytes })
        if (approved && approved.attachments[i]?.sha256 !== sha256) {
          throw new ServiceRefusal(
            'conflict',
            `${quoted(path)} is not the file that was approved: it has changed since. Ask again.`,
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
      const handle = await shelf.open(id)
      const text = await handle?.readFile('utf8').finally(() => handle.close())
      const [secret] = await findSecrets({ text }, { group: group.folder, signal })
      if (!secret) continue
      const reason = `The file ${quoted(name)} holds what looks like a secret (${secret.kind}).`
      store.audit.append({
        at: now(),
        group: group.folder,
        actor: 'agent',
        decidedBy: 'host',
        action: 'send_message',
        summary: `send ${quoted(name)} to the chat ${jid}`,
        gate: 'block',
        outcome: 'denied',
        reason,
        requestId,
      })
      throw new ServiceRefusal('denied', `${reason} It is not sent to another chat.`)
    }
  }

  const commit = (input: Input, context: WorkContext, copies: readonly Attachment[]) => {
    const { folder } = context.group
    const at = now()
    return store.transaction(transaction => {
      const group = transaction.group(folder)
      if (!group) throw new ServiceRefusal('cancelled', 'The group is no longer registered.')
      const notAllowed = authorise('send_message', { kind: 'group', group }, { jid: input.jid })
      if (notAllowed) throw new ServiceRefusal(notAllowed.error.code, notAllowed.error.message)
      const id = options.positions.next()
      const outcome = done({
        message_id: String(id),
        status: 'queued',
        attachments: copies.map(({ name, type, bytes }) => ({ name, type, bytes })),
      })
      // It was taken back, or its time was up.
      if (!transaction.answerRequest(context.seq, outcome, at)) return undefined
      const { jid, text, sender = null, speech = null } = input
      const message = { id, group: folder, jid, kind: 'text', text, sender, speech, messageId: null } as const
      transaction.insertMessage({ ...message, attachments: copies, createdAt: at })
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

  const send = async (input: Input, context: WorkContext): Promise<Outcome> => {
    const copies: Attachment[] = []
    let outcome: Outcome | undefined
    try {
      await copy(input, context, copies)
      await search(input, context, copies)
      options.fault('copied')
      outcome = await commit(input, context, copies)
    } catch (error) {
      await shelf.drop(copies.map(({ id }) => id))
      if (error instanceof ServiceRefusal || context.signal.aborted) throw error
      // What the system says about our own directories is not for an agent.
      context.log.error({ err: error }, 'files could not be sent')
      throw new ServiceRefusal('internal', `The files could not be copied (${errorCode(error)}).`)
    }
    const ids = copies.map(({ id }) => id)
    if (!outcome) {
      await shelf.drop(ids)
      throw new ServiceRefusal('cancelled', 'The request was taken back.')
    }
    options.fault('attached')
    shelf.keep(ids)
    options.apply([{ kind: 'request_over', seq: context.seq, outcome }, { kind: 'message_queued' }])
    return outcome
  }

  /** The content of each file by its hash, and whether a secret is in one of them. */
  const evidence = async (given: unknown, { group, signal }: EvidenceContext) => {
    const { attachments } = payloads.send_message.parse(given)
    if (!attachments) return undefined
    const files: object[] = []
    let secret: Evidence['secret']
    for (const { path, name } of attachments) {
      signal.throwIfAborted()
      const taken = await takeFile(options.folderOf(group.folder), path, options.limit)
      try {
        const { text, ...file } = await readThrough(taken)
        files.push({ path, name: shownName(name ?? taken.name), ...file })
        const [found] =
          text === undefined
            ? []
            : ((await options.findSecrets?.({ text }, { group: group.folder, signal })) ?? [])
        if (found) secret ??= { kind: found.kind, where: `the file ${quoted(path)}` }
      } finally {
        await taken.close()
      }
    }
    return { fields: { attachments: files }, secret }
  }

  return {
    name: 'send_message',
    repeatable: true,
    timeoutMs,
    evidence,
    async call(given, context) {
      const input = inputSchema.parse(given)
      const outcome = await inTurn(context.group.folder, () => send(input, context))
      return outcome.ok ? outcome.result : {}
    },
  }
}

const isSearched = ({ type, bytes }: { type: string; bytes: number }) =>
  type === 'text/plain' && bytes <= searchedBytes

/** What is in it, by its hash, and as a text where it is searched. */
async function readThrough({ content, bytes }: Taken) {
  const hash = createHash('sha256')
  const parts: Buffer[] = []
  let kept = 0
  for await (const chunk of content) {
    hash.update(chunk)
    if (bytes > searchedBytes && kept >= headBytes) continue
    // The source may use its memory again.
    parts.push(Buffer.from(chunk))
    kept += chunk.length
  }
  const all = Buffer.concat(parts)
  const type = typeOf(all.subarray(0, headBytes))
  const text = isSearched({ type, bytes }) ? all.toString('utf8') : undefined
  return { bytes, type, sha256: hash.digest('hex'), text }
}
