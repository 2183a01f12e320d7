import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Progress, progressSchema, type Receipt, receiptSchema } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { createDirectoryWatch } from './directory-watch.ts'
import { complain } from './failure.ts'
import { jsonIn, readHostFile } from './read-file.ts'

/** The answer to one request: a receipt, or what is wrong with the file in its place. */
export type Answer = { receipt: Receipt } | { problem: string }

/** Rings when the answer, or word of how far it has come, may be there. */
export interface Bell {
  onRing: (() => void) | undefined
  close(): void
}

export interface Bells {
  /** Undefined where nothing can be listened to; then looking has to do, as it does where events never arrive. */
  listen(id: string): Bell | undefined
}

const answerName = (id: string) => `${id}.json`
const progressName = (id: string) => `${id}.progress.json`

/**
 * The bells of all requests hang on one watch, which is put up for the first of them and stays: to put one up for each
 * costs as much as to post the request (measured).
 */
export function createBells(responses: string): Bells {
  const waiting = new Map<string, Bell>()
  const watch = createDirectoryWatch(responses, name => {
    if (name === null) for (const bell of new Set(waiting.values())) bell.onRing?.()
    else waiting.get(name)?.onRing?.()
  })

  return {
    listen(id) {
      try {
        watch.hang()
      } catch (error) {
        complain(`answers are looked for, not listened for: ${reasonOf(error)}`)
        return undefined
      }
      const names = [answerName(id), progressName(id)]
      const bell: Bell = {
        onRing: undefined,
        close() {
          for (const name of names) waiting.delete(name)
        },
      }
      for (const name of names) waiting.set(name, bell)
      return bell
    },
  }
}

/** Reads the answer and clears it away; undefined while there is none. */
export function takeAnswer(responses: string, id: string): Answer | undefined {
  const path = join(responses, answerName(id))
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

/** The host clears it away with the answer; for an answer that nobody waits for any longer, we do. */
export function clearProgress(responses: string, id: string): void {
  try {
    unlinkSync(join(responses, progressName(id)))
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return
    complain(`word of a request’s progress stays behind: ${reasonOf(error)}`)
  }
}

/** Tells each step once. What is no progress is complained of once: it is not worth losing the answer for. */
export function createProgressReader(
  responses: string,
  id: string,
  tell: (step: Progress) => void,
): () => void {
  let seen: string | undefined
  return () => {
    const file = readHostFile(join(responses, progressName(id)))
    if ('missing' in file) return
    const found = 'text' in file ? file.text : file.problem
    if (found === seen) return
    seen = found
    const step = progressSchema.safeParse('text' in file ? jsonIn(file.text) : undefined)
    if (step.success && step.data.id === id) tell(step.data)
    else complain(`word of a request’s progress is of no use${'problem' in file ? `: ${file.problem}` : ''}`)
  }
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
  /** by `performance.now()`; asked again each time, as the host may say that a person takes longer */
  deadline(): number
  /** looks how far the host has come */
  readProgress(): void
  /** whether that is told to anybody: then before the answer, as that is the end of it */
  isTold: boolean
}): Promise<Answer | undefined> {
  const { responses, id, bell, signal, deadline, readProgress, isTold } = options
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
      if (isTold) readProgress()
      const answer = takeAnswer(responses, id)
      if (answer) finish(answer)
      else if (!isTold) readProgress()
      return answer !== undefined
    }
    const lookAgain = () => {
      if (look()) return
      const leftMs = deadline() - performance.now()
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
