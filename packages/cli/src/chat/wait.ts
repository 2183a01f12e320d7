import { setTimeout as sleep } from 'node:timers/promises'
import type { EntryAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import type { Room } from './room.ts'

/**
 *   answered   the agent has said something
 *   silent     a run has used the message, and said nothing
 *   forwarded  it was the answer to a question; the agent that asked has nothing more to say
 *   uncalled   the group's agent has to be called by its trigger
 *   late       no answer in time
 */
export type Result = 'answered' | 'silent' | 'forwarded' | 'uncalled' | 'late'

type Said = Awaited<ReturnType<Room['say']>>

const pollMs = 1000
const pastEntries = 200

const isDelivered = ({ direction, status }: EntryAnswer) => direction === 'out' && status === 'sent'
const daemonEnded = () => new Failure('The daemon ended before there was an answer.')

/**
 * Says something and prints what agents say until it is answered. Events only tell when to read: it is answered once the
 * store says that a run has used the message, and everything said since is delivered.
 */
export async function sayAndWait(options: {
  room: Room
  say(): Promise<Said>
  print(entry: EntryAnswer): Promise<void>
  timeoutMs: number
}): Promise<Result> {
  const { room, say, print, timeoutMs } = options
  const read = async () => {
    try {
      return await room.entries(pastEntries)
    } catch (error) {
      throw room.client.daemon ? error : daemonEnded()
    }
  }
  const shown = new Set((await read()).filter(isDelivered).map(({ key }) => key))
  const shownBefore = shown.size
  const end = new AbortController()
  let change = Promise.withResolvers<void>()
  let failure: unknown
  const followed = room
    .follow(() => change.resolve(), end.signal)
    .then(daemonEnded, (error: unknown) => error)
    .then(reason => {
      failure = reason
      change.resolve()
    })
  try {
    const said = await say()
    if (said.status === 'context') return 'uncalled'
    const deadline = performance.now() + timeoutMs
    for (;;) {
      change = Promise.withResolvers()
      if (failure !== undefined) throw failure
      const entries = await read()
      for (const entry of entries.filter(each => isDelivered(each) && !shown.has(each.key))) {
        shown.add(entry.key)
        await print(entry)
      }
      if (isFinished(said, entries))
        return shown.size > shownBefore ? 'answered' : said.status === 'used' ? 'forwarded' : 'silent'
      const left = deadline - performance.now()
      if (left <= 0) return 'late'
      await Promise.race([change.promise, sleep(Math.min(pollMs, left))])
    }
  } finally {
    end.abort()
    await followed
  }
}

function isFinished(said: Said, entries: readonly EntryAnswer[]): boolean {
  // An answer to a question is used at once; the run that asked then continues.
  const isUsed =
    said.status === 'used'
      ? entries.every(({ status }) => status !== 'waiting' && status !== 'given')
      : entries.find(({ key }) => key === said.key)?.status === 'used'
  const isSending = entries.some(
    ({ direction, status, error }) => direction === 'out' && status === 'pending' && !error,
  )
  return isUsed && !isSending
}
