import type { ChatAnswer, Client, EntryAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import { followChats } from './follow.ts'

/**
 * what came of it: it is answered; used, and nothing was said; passed on to an agent that had asked, which has nothing
 * more to say; nobody was called; no answer in time
 */
export type Answer = 'answered' | 'silent' | 'passed on' | 'context' | 'late'

const lookMs = 1000

/**
 * Says something and prints what agents say until it is answered. Events only tell when to look: it is answered once the
 * store says that a run has used it and everything said since is delivered.
 */
export async function answerTo(options: {
  client: Client
  api: typeof import('@hatchway/host/api')
  room: ChatAnswer
  say(): Promise<{ key: string | null; status: 'waiting' | 'context' | 'used' }>
  print(entry: EntryAnswer): Promise<void>
  timeoutMs: number
}): Promise<Answer> {
  const { client, api, room, print } = options
  const path = `/api/chats/${encodeURIComponent(room.jid)}/messages?limit=200`
  const read = async () => {
    try {
      return (await client.get(path, api.entriesAnswer)).entries
    } catch (error) {
      throw client.daemon ? error : gone()
    }
  }
  const shown = new Set((await read()).filter(isDelivered).map(({ key }) => key))
  const enough = new AbortController()
  let ring = () => {}
  let failed: unknown
  const watched = followChats(client, api, () => ring(), enough.signal)
    .then(() => {
      failed = gone()
    })
    .catch((error: unknown) => {
      failed = error
    })
    .finally(() => ring())
  try {
    const said = await options.say()
    if (said.status === 'context') return 'context'
    const deadline = performance.now() + options.timeoutMs
    let answered = false
    for (;;) {
      const rung = new Promise<void>(resolve => {
        ring = resolve
      })
      if (failed !== undefined) throw failed
      const entries = await read()
      for (const entry of entries.filter(isDelivered)) {
        if (shown.has(entry.key)) continue
        shown.add(entry.key)
        answered = true
        await print(entry)
      }
      // An answer to a question is used at once; what comes of it, comes from the run that asked.
      const isUsed =
        said.status === 'used'
          ? entries.every(({ status }) => status !== 'waiting' && status !== 'given')
          : entries.find(({ key }) => key === said.key)?.status === 'used'
      const isOpen = entries.some(
        entry => entry.direction === 'out' && entry.status === 'pending' && !entry.error,
      )
      if (isUsed && !isOpen) return answered ? 'answered' : said.status === 'used' ? 'passed on' : 'silent'
      const left = deadline - performance.now()
      if (left <= 0) return 'late'
      await Promise.race([rung, pause(Math.min(lookMs, left))])
    }
  } finally {
    enough.abort()
    await watched
  }
}

const isDelivered = ({ direction, status }: EntryAnswer) => direction === 'out' && status === 'sent'

const pause = (ms: number) => new Promise<void>(resolve => void setTimeout(resolve, ms))

const gone = () => new Failure('The daemon ended before there was an answer.')
