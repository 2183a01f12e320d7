import type { FetchMessageObject, ImapFlow } from 'imapflow'
import { z } from 'zod'
import { pause, within } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'

/**
 * Reads a folder of the mailbox from where it was last left. UIDs only grow as long as UIDVALIDITY stays the same: the two
 * together are the cursor, and it moves on when a mail is stored. A server that has had to number the mails anew is asked for
 * those of the time since then, and what was taken before is known by its Message-ID.
 */
export interface FoundMail {
  uid: number
  /** the beginning of the mail, or all of it */
  source: Buffer
  isWhole: boolean
  at: number
  /** the whole mail; undefined: it is too large, or was deleted meanwhile */
  fetchAll(): Promise<Buffer | undefined>
}

export interface MailboxOptions {
  client: ImapFlow
  folder: string
  memory: Pick<ChannelHost, 'recall' | 'remember'>
  pollMs: number
  /** rejects where it could not be stored; whether it is somebody's words, which are then marked as read */
  take(mail: FoundMail): Promise<boolean>
  now(): number
}

/** The headers, and all of most mails. */
const glanceBytes = 131_072
const largestMail = 40_000_000
const batch = 20
const farewellMs = 1000
/** servers may be in another time zone, and their clocks may differ */
const dayMs = 86_400_000

const key = 'cursor'
const cursorSchema = z.object({ validity: z.string(), uid: z.int(), at: z.number() })
type Cursor = z.output<typeof cursorSchema>

/** Until the connection ends or the signal is aborted. */
export async function readMailbox(
  options: MailboxOptions,
  signal: AbortSignal,
  connected: () => void,
): Promise<void> {
  if (signal.aborted) return
  const { client, folder, pollMs } = options
  const closed = Promise.withResolvers<void>()
  let failure: unknown
  let news = Promise.withResolvers<void>()
  client.on('error', error => {
    failure = error
  })
  client.on('close', () => closed.resolve())
  client.on('exists', () => news.resolve())
  const leave = () => client.close()
  signal.addEventListener('abort', leave, { once: true })
  try {
    await client.connect()
    const mailbox = await client.mailboxOpen(folder)
    let cursor = await begin(options, String(mailbox.uidValidity), mailbox.uidNext - 1)
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      news = Promise.withResolvers()
      cursor = await takeNew(options, cursor)
      if (isFirst) connected()
      const waited = new AbortController()
      // The server tells of new mail while it is idle; whether it does or not, it is asked now and then.
      await Promise.race([news.promise, closed.promise, pause(pollMs, waited.signal)])
      waited.abort()
      if (!client.usable && !signal.aborted)
        throw failure ?? new Error(client.byeReason ?? 'the server has closed the connection')
    }
  } finally {
    signal.removeEventListener('abort', leave)
    if (client.usable) await within(farewellMs, client.logout())
    client.close()
  }
}

/** A mailbox that is read for the first time begins with what comes from now on. */
async function begin(options: MailboxOptions, validity: string, last: number): Promise<Cursor> {
  const { memory, now } = options
  const stored = memory.recall(key)
  const cursor = stored === undefined ? undefined : cursorSchema.parse(JSON.parse(stored))
  if (cursor?.validity === validity) return cursor
  const taken = cursor
    ? await takeNew(options, { ...cursor, validity, uid: 0 }, new Date(cursor.at - dayMs))
    : undefined
  const fresh = { validity, uid: Math.max(last, taken?.uid ?? 0), at: now() }
  memory.remember(key, JSON.stringify(fresh))
  return fresh
}

/** `since`: only mails that came then or later. */
async function takeNew(options: MailboxOptions, from: Cursor, since?: Date): Promise<Cursor> {
  const { client, memory, now } = options
  let cursor = from
  const found = await client.search({ uid: `${cursor.uid + 1}:*`, ...(since && { since }) }, { uid: true })
  if (!found) throw new Error('the server could not search the folder')
  // The last mail is always among those from a number on, however small its own number is.
  const uids = found.filter(uid => uid > cursor.uid).sort((a, b) => a - b)
  for (let at = 0; at < uids.length; at += batch) {
    const some = uids.slice(at, at + batch)
    const mails = await client.fetchAll(
      some.join(','),
      { uid: true, size: true, internalDate: true, source: { start: 0, maxLength: glanceBytes } },
      { uid: true },
    )
    const read: number[] = []
    for (const mail of mails.toSorted((a, b) => a.uid - b.uid)) {
      if (await options.take(foundMail(options, mail))) read.push(mail.uid)
      cursor = { ...cursor, uid: mail.uid, at: now() }
      memory.remember(key, JSON.stringify(cursor))
    }
    if (read.length > 0) await client.messageFlagsAdd(read.join(','), ['\\Seen'], { uid: true })
  }
  return cursor
}

function foundMail({ client, now }: MailboxOptions, mail: FetchMessageObject): FoundMail {
  const { uid, size = 0, source = Buffer.alloc(0), internalDate } = mail
  const isWhole = source.length < glanceBytes || size <= source.length
  return {
    uid,
    source,
    isWhole,
    at: internalDate === undefined ? now() : new Date(internalDate).getTime(),
    async fetchAll() {
      if (isWhole) return source
      if (size > largestMail) return undefined
      const whole = await client.fetchOne(String(uid), { source: true }, { uid: true })
      return whole ? whole.source : undefined
    },
  }
}
