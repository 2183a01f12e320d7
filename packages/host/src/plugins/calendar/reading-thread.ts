import { workerData } from 'node:worker_threads'
import { answerQuestions } from '../../base/thread-side.ts'
import { expand } from './expand.ts'
import type { ReadingJob, ReadingResult } from './reading.ts'
import { Unreadable } from './recurrence.ts'
import { removeInstance } from './remove-instance.ts'
import { rememberClocks } from './zones.ts'

/** Reads calendar objects one after the other and tells of each; see reading.ts. */
const { task, ...limits }: Omit<ReadingJob, 'texts'> = workerData
const options = { ...limits, describedClock: rememberClocks() }

/** When those begin that were told, the first ones of all objects: what begins later need not be told any more. */
let starts: number[] = []

const expanded = (text: string, most: number): ReadingResult => {
  const last = starts[most - 1]
  const to = last === undefined ? options.range.to : Math.min(last + 1, options.range.to)
  const found = expand(text, { ...options, most, range: { ...options.range, to } })
  starts = [...starts, ...found.instances.map(({ start }) => start)]
    .sort((one, other) => one - other)
    .slice(0, most)
  return { kind: 'expanded', ...found }
}

const read = (text: string): ReadingResult => {
  try {
    return task.kind === 'expand'
      ? expanded(text, task.most)
      : { kind: 'removed', remainder: removeInstance(text, task.key, task.stamp, options) }
  } catch (error) {
    // The parser's own words quote the file.
    return {
      kind: 'unreadable',
      reason: error instanceof Unreadable ? error.message : 'it is not well written',
    }
  }
}

answerQuestions(read)
