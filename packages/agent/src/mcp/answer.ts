import { type FSWatcher, statSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { type Receipt, receiptSchema } from '@hatchway/protocol'
import { complain, reasonOf } from './failure.ts'
import { jsonIn, readHostFile } from './read-file.ts'

/** The answer to one request: a receipt, or what is wrong with the file in its place. */
export type Answer = { receipt: Receipt } | { problem: string }

/** Rings when the answer may be there. Events are only a doorbell (lesson 17): nobody relies on it. */
export interface Bell {
  onRing: (() => void) | undefined
  close(): void
}

export interface Bells {
  /** Undefined where nothing can be listened to; then looking has to do, as it does where events never arrive. */
  listen(id: string): Bell | undefined
}

/**
 * The bells of all requests hang on one watch, which is put up for the first of them and stays: to put one up for each
 * costs as much as to post the request (measured).
 */
export function createBells(responses: string): Bells {
  const waiting = new Map<string, Bell>()
  let watched: { watcher: FSWatcher; directory: string } | undefined

  const hang = () => {
    // Before the watch: a directory that was replaced in between is then found to be another one the next time.
    const directory = identityOf(responses)
    if (watched?.directory === directory) return
    watched?.watcher.close()
    watched = undefined
    const watcher = watch(responses, { persistent: false })
    watched = { watcher, directory }
    watcher.on('change', (_event, name) => {
      if (name === null) for (const bell of [...waiting.values()]) bell.onRing?.()
      else waiting.get(String(name))?.onRing?.()
    })
    watcher.on('error', () => {
      watcher.close()
      if (watched?.watcher === watcher) watched = undefined
    })
  }

  return {
    listen(id) {
      try {
        hang()
      } catch (error) {
        complain(`answers are looked for, not listened for: ${reasonOf(error)}`)
        return undefined
      }
      const name = `${id}.json`
      const bell: Bell = { onRing: undefined, close: () => waiting.delete(name) }
      waiting.set(name, bell)
      return bell
    },
  }
}

function identityOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true })
  return `${dev}:${ino}`
}

/** Reads the answer and clears it away; undefined while there is none. */
export function takeAnswer(responses: string, id: string): Answer | undefined {
  const path = join(responses, `${id}.json`)
  const file = readHostFile(path)
  if ('missing' in file) return undefined
  try {
    unlinkSync(path)
  } catch (error) {
    complain(`an answer stays behind: ${reasonOf(error)}`)
  }
  if ('problem' in file) return { problem: `the host’s answer is of no use: ${file.problem}` }
  const receipt = receiptSchema.safeParse(jsonIn(file.text))
  return receipt.success && receipt.data.id === id
    ? { receipt: receipt.data }
    : { problem: 'the host’s answer is of no use: it is not a receipt for this request' }
}

/** Between two looks: short at first, as most answers come within milliseconds. */
const shortestMs = 2
const longestMs = 100

/** Waits for the answer by listening and by looking; undefined if time ran out or the caller gave up. */
export function awaitAnswer(options: {
  responses: string
  id: string
  bell: Bell | undefined
  signal: AbortSignal
  timeoutMs: number
}): Promise<Answer | undefined> {
  const { responses, id, bell, signal } = options
  const deadline = performance.now() + options.timeoutMs
  return new Promise(resolve => {
    let timer: NodeJS.Timeout | undefined
    let pauseMs = shortestMs
    const finish = (answer: Answer | undefined) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
      if (bell) bell.onRing = undefined
      resolve(answer)
    }
    const giveUp = () => finish(undefined)
    const look = () => {
      const answer = takeAnswer(responses, id)
      if (answer) finish(answer)
      return answer !== undefined
    }
    const lookAgain = () => {
      if (look()) return
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) return giveUp()
      pauseMs = Math.min(longestMs, pauseMs * 1.5)
      timer = setTimeout(lookAgain, Math.min(pauseMs, leftMs))
    }
    signal.addEventListener('abort', giveUp)
    if (signal.aborted) return giveUp()
    if (!bell) return lookAgain()
    // Nothing can have come before the bell hung, so it is too early to look.
    bell.onRing = look
    timer = setTimeout(lookAgain, pauseMs)
  })
}
