import { type FSWatcher, unlinkSync, watch } from 'node:fs'
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

/** Undefined where nothing can be listened to; then looking has to do, as it does where events never arrive. */
export function listen(responses: string, id: string): Bell | undefined {
  let watcher: FSWatcher
  try {
    watcher = watch(responses, { persistent: false })
  } catch (error) {
    complain(`answers are looked for, not listened for: ${reasonOf(error)}`)
    return undefined
  }
  const bell: Bell = { onRing: undefined, close: () => watcher.close() }
  watcher.on('change', (_event, name) => {
    if (name === null || name === `${id}.json`) bell.onRing?.()
  })
  watcher.on('error', () => watcher.close())
  return bell
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
    if (bell) bell.onRing = look
    lookAgain()
  })
}
