import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Progress, progressSchema, type Receipt, receiptSchema } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { createDirectoryWatch } from './directory-watch.ts'
import { complain } from './failure.ts'
import { jsonIn, readHostFile } from './read-file.ts'

/** The answer to one request: a receipt, or what is wrong with the file in its place. */
export type Answer = { receipt: Receipt } | { problem: string }

/** Calls `onChange` when the answer, or a report of its progress, may be there. */
export interface AnswerWatcher {
  onChange: (() => void) | undefined
  close(): void
}

export interface AnswerWatchers {
  /** Undefined where the directory cannot be watched; then it is read at intervals, as it is where events never arrive. */
  watch(id: string): AnswerWatcher | undefined
}

const answerName = (id: string) => `${id}.json`
const progressName = (id: string) => `${id}.progress.json`

/**
 * All requests share one watch of the directory, which is opened for the first of them and stays open: a watch for each
 * costs as much as posting the request (measured).
 */
export function createAnswerWatchers(responses: string): AnswerWatchers {
  const waiting = new Map<string, AnswerWatcher>()
  const directory = createDirectoryWatch(responses, name => {
    if (name === null) for (const watcher of new Set(waiting.values())) watcher.onChange?.()
    else waiting.get(name)?.onChange?.()
  })

  return {
    watch(id) {
      try {
        directory.open()
      } catch (error) {
        complain(
          `the directory of answers cannot be watched and is read at intervals instead: ${reasonOf(error)}`,
        )
        return undefined
      }
      const names = [answerName(id), progressName(id)]
      const watcher: AnswerWatcher = {
        onChange: undefined,
        close() {
          for (const name of names) waiting.delete(name)
        },
      }
      for (const name of names) waiting.set(name, watcher)
      return watcher
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

/** Reports each step once. An invalid file is complained of once: it is not worth losing the answer for. */
export function createProgressReader(
  responses: string,
  id: string,
  report: (step: Progress) => void,
): () => void {
  let seen: string | undefined
  return () => {
    const file = readHostFile(join(responses, progressName(id)))
    if ('missing' in file) return
    const found = 'text' in file ? file.text : file.problem
    if (found === seen) return
    seen = found
    const step = progressSchema.safeParse('text' in file ? jsonIn(file.text) : undefined)
    if (step.success && step.data.id === id) report(step.data)
    else complain(`word of a request’s progress is of no use${'problem' in file ? `: ${file.problem}` : ''}`)
  }
}

/** Between two reads: short at first, as most answers come within milliseconds. */
const shortestMs = 2
const longestMs = 100

/** Waits for the answer by events and by reading at intervals; undefined if time ran out or the caller gave up. */
export function awaitAnswer(options: {
  responses: string
  id: string
  watcher: AnswerWatcher | undefined
  signal: AbortSignal
  /** by `performance.now()`; asked again each time, as the host may say that a person takes longer */
  deadline(): number
  /** looks how far the host has come */
  readProgress(): void
  /** whether that is told to anybody: then before the answer, as that is the end of it */
  isTold: boolean
}): Promise<Answer | undefined> {
  const { responses, id, watcher, signal, deadline, readProgress, isTold } = options
  return new Promise(resolve => {
    let timer: NodeJS.Timeout | undefined
    let pauseMs = shortestMs
    const finish = (answer: Answer | undefined) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
      if (watcher) watcher.onChange = undefined
      resolve(answer)
    }
    const giveUp = () => finish(undefined)
    const read = () => {
      if (isTold) readProgress()
      const answer = takeAnswer(responses, id)
      if (answer) finish(answer)
      else if (!isTold) readProgress()
      return answer !== undefined
    }
    const poll = () => {
      if (read()) return
      const leftMs = deadline() - performance.now()
      if (leftMs <= 0) return giveUp()
      pauseMs = Math.min(longestMs, pauseMs * 1.5)
      timer = setTimeout(poll, Math.min(pauseMs, leftMs))
    }
    signal.addEventListener('abort', giveUp)
    if (signal.aborted) return giveUp()
    if (!watcher) return poll()
    // The request was posted after the watch began, so nothing can have come unnoticed yet.
    watcher.onChange = read
    timer = setTimeout(poll, pauseMs)
  })
}
