import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type Event, eventIn } from './events.ts'

/**
 * Messages that cannot be decrypted yet: their keys come by another way, and may be late. They are kept for a day, through a
 * restart, too, and tried again whenever keys or devices have come.
 */
export interface Unread {
  add(room: string, raw: object, by: string, reason: string): void
  retry(take: (room: string, event: Event, raw: object) => Promise<void>): Promise<void>
}

const keepMs = 86_400_000
/** of all of them; an event may have 65,536 */
const mostBytes = 1_000_000
const key = 'unreadable'
const storedSchema = z.array(
  z.object({ room: z.string(), raw: z.record(z.string(), z.unknown()), at: z.number() }),
)

const bytesOf = (some: readonly unknown[]) => JSON.stringify(some).length

export function createUnread(options: {
  memory: Pick<ChannelHost, 'recall' | 'remember'>
  /** for the operator */
  report(problem: string): void
  log: Logger
  now(): number
}): Unread {
  const { memory, log, now } = options
  const waiting = new Map(
    storedSchema.parse(JSON.parse(memory.recall(key) ?? '[]')).map(one => [String(one.raw.event_id), one]),
  )
  const still = new Set<string>()
  const save = () =>
    memory.remember(key, waiting.size === 0 ? undefined : JSON.stringify([...waiting.values()]))

  /** Of the room that has most: whoever fills one pushes out nothing of another. */
  const dropOne = () => {
    const rooms = [...Map.groupBy(waiting, ([, { room }]) => room).values()]
    const [fullest] = rooms.toSorted((a, b) => bytesOf(b) - bytesOf(a))
    const [oldest] = fullest ?? []
    if (oldest) waiting.delete(oldest[0])
  }

  return {
    add(room, given, by, reason) {
      const raw = { ...given } as Record<string, unknown>
      const id = String(raw.event_id)
      still.add(id)
      if (waiting.has(id)) return
      log.warn({ room, sender: by, reason }, 'a message cannot be decrypted yet')
      options.report(`A message of ${by} cannot be decrypted: ${reason}.`)
      waiting.set(id, { room, raw, at: now() })
      while (bytesOf([...waiting.values()]) > mostBytes) dropOne()
      save()
    },
    async retry(take) {
      if (waiting.size === 0) return
      for (const [id, { room, raw, at }] of [...waiting]) {
        const event = eventIn(raw)
        still.delete(id)
        if (event && now() - at < keepMs) await take(room, event, raw)
        if (!still.has(id)) waiting.delete(id)
      }
      save()
    },
  }
}
