import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileNames, messageBody } from './messages.ts'
import { post } from './post.ts'
import { serve } from './serve.ts'
import { asFields, asNumber, asTexts } from './shape.ts'
import { writing } from './writing.ts'

/**
 * The process that stands for the agents: writes messages into the directories it is given, one group after the
 * other, and tells afterwards when each was renamed.
 */
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

  ...writing(({ directories }) => {
    const into = asTexts(directories)
    let index = 0
    return () => writeOne(into, index++)
  }),

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

  /** a backlog: `count` messages, which nobody is watching for yet, so that they need no temporary name */
  async fill(argument) {
    const { directories, count } = asFields(argument)
    const into = asTexts(directories)
    for (const directory of into) mkdirSync(directory, { recursive: true })
    for (let index = 0; index < asNumber(count); index++) {
      const group = index % into.length
      const now = new Date()
      writeFileSync(join(into[group] ?? '', names(now)), messageBody(group, now))
      if (index % 1000 === 0) await eventLoopTurn()
    }
  },
})
