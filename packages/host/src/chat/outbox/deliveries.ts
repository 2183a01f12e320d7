import type { Logger } from 'pino'
import { createWorkQueue } from '../../base/keyed-queue.ts'
import type { Change, MessageRow, Store } from '../../store/types.ts'
import type { Channel } from '../channels/types.ts'
import { attempt, type Lookup } from './delivery.ts'
import type { Lane, Lanes } from './lanes.ts'

/** Delivers what is in the lanes: many chats of a channel at the same time, the messages of one chat in their order. */
export interface Deliveries {
  /** begins with the lanes that could go on now; each promise is fulfilled when its lane rests again */
  begin(): Promise<void>[]
  /** delivers nothing more; resolves when what is under way is over */
  stop(): Promise<void>
}

/** chats of one channel that are served at the same time */
const chatsAtOnce = 16
/** messages of one chat before another has its turn */
const messagesPerTurn = 20
const failedPauseMs = 1000

export function createDeliveries(options: {
  store: Pick<Store, 'messages'>
  channelOf(jid: string): Channel | undefined
  lookup: Lookup
  lanes: Lanes
  log: Logger
  now(): number
  /** what has become of a message */
  note(message: MessageRow, change: Change): void
}): Deliveries {
  const { store, channelOf, lookup, lanes, log, now, note } = options
  const queue = createWorkQueue({ perKey: chatsAtOnce })
  const stopping = new AbortController()
  let isStopped = false

  /** The first message of a lane, and then the next ones, as long as all goes well. */
  const serve = async (lane: Lane, channel: Channel | undefined) => {
    for (let served = 0; served < messagesPerTurn && !isStopped; served++) {
      const id = lane.ids[0]
      if (id === undefined) return
      const message = lane.rows.get(id) ?? store.messages({ after: id - 1, limit: 1 })[0]
      if (message?.id !== id || message.status !== 'pending') {
        lanes.advance(lane)
        continue
      }
      const hasWaited = await channel?.pace?.turn(stopping.signal)
      if (isStopped) return
      const change = await attempt(message, channel, lookup)
      note(message, change)
      channel?.pace?.spend(Math.max(0, change.partsSent - 1))
      if (change.status === 'pending') return lanes.postpone(lane, { ...message, ...change })
      lanes.advance(lane)
      // Where there is too little for all, others have their turn before this chat goes on.
      if (hasWaited) return
    }
  }

  const serveInTurns = async (lane: Lane) => {
    const channel = channelOf(lane.jid)
    lane.isBusy = true
    try {
      do await queue.run(channel?.name ?? '', undefined, () => serve(lane, channel))
      while (!isStopped && lane.ids.length > 0 && lane.notBefore <= now())
    } catch (error) {
      if (isStopped) return
      lane.notBefore = now() + failedPauseMs
      log.error({ err: error, jid: lane.jid }, 'messages of a chat could not be delivered; retrying')
    } finally {
      lane.isBusy = false
    }
  }

  return {
    begin: () => lanes.ready(now()).map(serveInTurns),
    stop() {
      isStopped = true
      stopping.abort()
      return queue.stop(new Error('The host is stopping.'))
    },
  }
}
