import { setTimeout as sleep } from 'node:timers/promises'
import { pause } from './post.ts'
import { asFields, asNumber, type Fields } from './shape.ts'
import { stampLog } from './stamps.ts'

interface Sent {
  /** by which the receiver knows it, too */
  name: string
  /** just before it was given away */
  at: bigint
}

type Write = () => Sent | Promise<Sent>

const eventLoopTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/**
 * What every writing process can do, whatever it writes to: `prepare` is told where, and gives the way to write one
 * message. `atOnce`: how many may be under way where each is confirmed.
 */
export const writing = (prepare: (to: Fields) => Write | Promise<Write>, atOnce = 1) => {
  const log = stampLog()
  return {
    /** `count` messages with a pause of `gap` ms before each; `even`: exactly so, as near as a timer can */
    async trickle(argument: unknown) {
      const to = asFields(argument)
      const write = await prepare(to)
      const wait = to.even === true ? sleep : pause
      for (let index = 0; index < asNumber(to.count); index++) {
        await wait(asNumber(to.gap))
        const { name, at } = await write()
        log.add(name, at)
      }
      return log.take()
    },

    /** `count` messages without any pause, or as many as there are within `seconds` */
    async burst(argument: unknown) {
      const to = asFields(argument)
      const write = await prepare(to)
      const count = asNumber(to.count)
      const end = process.hrtime.bigint() + BigInt(Math.round(asNumber(to.seconds) * 1e9))
      for (let index = 0; index < count && process.hrtime.bigint() < end; index += atOnce) {
        // one that waits for nothing must not wait for its turn either
        const sent = Array.from({ length: Math.min(atOnce, count - index) }, write)
        for (const one of sent) {
          const { name, at } = one instanceof Promise ? await one : one
          log.add(name, at)
        }
        if (index % 1000 === 0) await eventLoopTurn()
      }
      return log.take()
    },
  }
}
