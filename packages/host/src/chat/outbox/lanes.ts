import type { MessageRow } from '../../store/types.ts'

/** One chat's messages that are not delivered yet, in their order: a later one waits for those before it. */
export interface Lane {
  jid: string
  ids: number[]
  /** of some of the ids; the others are read again when it is their turn */
  rows: Map<number, MessageRow>
  /** it is being delivered, or waits for its turn to be */
  isBusy: boolean
  /** its first message is not tried again before this */
  notBefore: number
}

export interface Lanes {
  /** false: it is known already */
  admit(message: MessageRow): boolean
  isKnown(id: number): boolean
  /** those that are not busy and could go on now */
  ready(now: number): Lane[]
  /** the first of the lane is delivered, or given up */
  advance(lane: Lane): void
  /** the first of the lane is to be tried again */
  postpone(lane: Lane, message: MessageRow): void
}

const rowsKept = 20

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>()
  const known = new Set<number>()

  return {
    admit(message) {
      if (known.has(message.id)) return false
      known.add(message.id)
      let lane = lanes.get(message.jid)
      if (!lane) {
        lane = { jid: message.jid, ids: [], rows: new Map(), isBusy: false, notBefore: 0 }
        lanes.set(message.jid, lane)
      }
      const last = lane.ids.at(-1)
      lane.ids.push(message.id)
      if (last !== undefined && last > message.id) lane.ids.sort((a, b) => a - b)
      if (lane.rows.size < rowsKept) lane.rows.set(message.id, message)
      // Only a message that has an error was tried before, and says when it may be tried again.
      if (lane.ids[0] === message.id) lane.notBefore = message.error === null ? 0 : message.nextAttemptAt
      return true
    },
    isKnown: id => known.has(id),
    ready: now => [...lanes.values()].filter(lane => !lane.isBusy && lane.notBefore <= now),
    advance(lane) {
      const id = lane.ids.shift()
      lane.notBefore = 0
      if (id === undefined) return
      known.delete(id)
      lane.rows.delete(id)
      if (lane.ids.length === 0) lanes.delete(lane.jid)
    },
    postpone(lane, message) {
      lane.rows.set(message.id, message)
      lane.notBefore = message.nextAttemptAt
    },
  }
}
