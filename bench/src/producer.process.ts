import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileNames, messageBody } from './messages.ts'
import { pause, post } from './post.ts'
import { serve } from './serve.ts'
import { asFields, asNumber, asTexts } from './shape.ts'
import { stampLog } from './stamps.ts'

/**
 * The process that stands for the agents: writes messages into the directories it is given, one group after the
 * other, and tells afterwards when each was renamed.
 */
const log = stampLog()
let names = fileNames(0)

const writeOne = (directories: readonly string[], index: number) => {
  const group = index % directories.length
  const directory = directories[group]
  if (directory === undefined) throw new Error('no directories')
  const now = new Date()
  const name = names(now)
  return { name, at: post(directory, name, messageBody(group, now)) }
}

const eventLoopTurn = () => new Promise<void>(resolve => setImmediate(resolve))

serve({
  /** so that two producers never choose the same name */
  number(argument) {
    names = fileNames(asNumber(argument))
  },

  /** `count` messages with a pause of `gap` ms before each; `even`: exactly so, as near as a timer can */
  async trickle(argument) {
    const { directories, count, gap, even } = asFields(argument)
    const into = asTexts(directories)
    const wait = even === true ? sleep : pause
    for (let index = 0; index < asNumber(count); index++) {
      await wait(asNumber(gap))
      const { name, at } = writeOne(into, index)
      log.add(name, at)
    }
    return log.take()
  },

  /** messages without any pause for `seconds` */
  flow(argument) {
    const { directories, seconds } = asFields(argument)
    const into = asTexts(directories)
    const end = process.hrtime.bigint() + BigInt(Math.round(asNumber(seconds) * 1e9))
    for (let index = 0; process.hrtime.bigint() < end; index++) {
      const { name, at } = writeOne(into, index)
      log.add(name, at)
    }
    return log.take()
  },

  /** so many messages in every second, whatever a single one takes */
  async steady(argument) {
    const { directories, perSecond, seconds } = asFields(argument)
    const into = asTexts(directories)
    const count = Math.round(asNumber(perSecond) * asNumber(seconds))
    const begin = performance.now()
    for (let index = 0; index < count; index++) {
      const early = begin + (index / asNumber(perSecond)) * 1000 - performance.now()
      if (early >= 1) await sleep(early)
      writeOne(into, index)
    }
    return { count, seconds: (performance.now() - begin) / 1000 }
  },

  /** a backlog: `count` messages, which nobody is watching for yet */
  async fill(argument) {
    const { directories, count } = asFields(argument)
    const into = asTexts(directories)
    for (const directory of into) mkdirSync(directory, { recursive: true })
    for (let index = 0; index < asNumber(count); index++) {
      writeOne(into, index)
      if (index % 1000 === 0) await eventLoopTurn()
    }
  },
})
