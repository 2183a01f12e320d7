import { createWorkQueue } from '../../base/keyed-queue.ts'
import { createThread, ThreadFailed } from '../../base/thread.ts'
import type { Range } from './days.ts'
import type { Expanded } from './expand.ts'
import type { Remainder } from './remove-instance.ts'

/**
 * What strangers write into a calendar is read in a thread of its own: an invitation that repeats on every 30 February
 * keeps any reader busy for ever, and nobody may have to wait for that. A thread that says nothing for too long is
 * ended, what it was reading counts as unreadable, and another one goes on with the rest.
 */
export interface ReadingJob {
  texts: readonly string[]
  task: { kind: 'expand'; most: number } | { kind: 'remove'; key: string; stamp: number }
  range: Range
  zone: string
  steps: number
}

export type ReadingResult =
  /** only what may be among the first so many of all texts */
  | ({ kind: 'expanded' } & Expanded)
  | { kind: 'removed'; remainder: Remainder | undefined }
  | { kind: 'unreadable'; reason: string }

export interface Reader {
  /** a result for each text, in their order; rejects with the signal's reason */
  read(job: ReadingJob, group: string, signal: AbortSignal): Promise<ReadingResult[]>
}

export interface ReaderOptions {
  /** how long a thread may take for one text, for starting, and all of them for the whole job */
  patienceMs?: number
  startMs?: number
  jobMs?: number
  /** so many texts may be given up on before the rest is */
  mostStalls?: number
  threads?: number
  memoryMb?: number
}

const unreadable: ReadingResult = {
  kind: 'unreadable',
  reason: 'it takes too much time or memory to read',
}

export function createReader(options: ReaderOptions = {}): Reader {
  const { patienceMs = 5000, startMs = 30_000, jobMs = 45_000, mostStalls = 3 } = options
  const { threads = 2, memoryMb = 256 } = options
  /** one of each group: nobody's calendar keeps another group waiting */
  const queue = createWorkQueue({ all: threads })

  const readAll = async ({ texts, ...job }: ReadingJob, signal: AbortSignal): Promise<ReadingResult[]> => {
    const thread = createThread<string, ReadingResult>({
      file: new URL('./reading-thread.ts', import.meta.url),
      workerData: job,
      limitMs: patienceMs,
      ...{ startMs, memoryMb },
    })
    const late = AbortSignal.timeout(jobMs)
    const either = AbortSignal.any([signal, late])
    const results: ReadingResult[] = []
    try {
      for (let stalls = 0; results.length < texts.length && stalls <= mostStalls && !late.aborted; ) {
        try {
          results.push(await thread.ask(texts[results.length] ?? '', either))
        } catch (error) {
          signal.throwIfAborted()
          if (error instanceof ThreadFailed && error.why === 'not_started') throw error
          // It took too long, or its memory has run out, which is all that can happen to a thread at work.
          stalls++
          results.push(unreadable)
        }
      }
    } finally {
      await thread.close()
    }
    return texts.map((_, index) => results[index] ?? unreadable)
  }

  return {
    read: (job, group, signal) =>
      job.texts.length === 0 ? Promise.resolve([]) : queue.run(group, signal, () => readAll(job, signal)),
  }
}
