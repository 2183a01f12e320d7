import type { MessageRow } from '../../store/types.ts'

/**
 * One chat's messages that are not delivered yet, in their order. A lane is
 *
 *   resting   nothing to do, or not before `notBefore`
 *   queued    waits for one of its channel's workers
 *   busy      its first message is being delivered; the others wait for that one
 */
export interface Lane {
  jid: string
  ids: number[]
  /** of some of the ids; the others are read again when it is their turn */
  rows: Map<number, MessageRow>
  state: 'resting' | 'queued' | 'busy'
  notBefore: number
}

export interface Lanes {
  /** false: it is known already */
  admit(message: MessageRow): boolean
  isKnown(id: number): boolean
  /** those that rest and could go on now */
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
        lane = { jid: message.jid, ids: [], rows: new Map(), state: 'resting', notBefore: 0 }
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
    ready: now => [...lanes.values()].filter(lane => lane.state === 'resting' && lane.notBefore <= now),
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
