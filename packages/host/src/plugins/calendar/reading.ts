import { Worker } from 'node:worker_threads'
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

const tooMuch = 'it takes too much time or memory to read'

export function createReader(options: ReaderOptions = {}): Reader {
  const { patienceMs = 5000, startMs = 30_000, jobMs = 45_000, mostStalls = 3 } = options
  const { threads = 2, memoryMb = 256 } = options
  const turns = createTurns(threads)

  /** Reads on from where the results end, for as long as the thread lives. */
  const readOn = (job: ReadingJob, results: ReadingResult[], deadline: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL('./reading-thread.ts', import.meta.url), {
        workerData: { ...job, first: results.length },
        // It has nothing to look for in the host's environment.
        env: {},
        resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      })
      let isReady = false
      let isOver = false
      let timer = setTimeout(() => end(new Error('The thread that reads calendars does not start.')), startMs)
      const lastTimer = setTimeout(() => end(), Math.max(0, deadline - performance.now()))
      const abort = () => end(signal.reason)
      const end = (failure?: unknown) => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        clearTimeout(lastTimer)
        signal.removeEventListener('abort', abort)
        worker.terminate().then(() => (failure === undefined ? resolve() : reject(failure)), reject)
      }
      worker.on('message', (message: 'ready' | { index: number; result: ReadingResult }) => {
        if (isOver) return
        isReady = true
        clearTimeout(timer)
        if (message !== 'ready') results[message.index] = message.result
        if (results.length === job.texts.length) end()
        else timer = setTimeout(() => end(), patienceMs)
      })
      // Once it is at work, its memory is all that can have run out.
      worker.on('error', error => end(isReady ? undefined : error))
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
    })

  const readAll = async (job: ReadingJob, signal: AbortSignal): Promise<ReadingResult[]> => {
    const results: ReadingResult[] = []
    const giveUp = () => results.push({ kind: 'unreadable', reason: tooMuch })
    const deadline = performance.now() + jobMs
    for (let stalls = 0; results.length < job.texts.length; stalls++) {
      await readOn(job, results, deadline, signal)
      if (results.length < job.texts.length) giveUp()
      if (stalls >= mostStalls || performance.now() >= deadline)
        while (results.length < job.texts.length) giveUp()
    }
    return results
  }

  return {
    read: (job, group, signal) =>
      job.texts.length === 0 ? Promise.resolve([]) : turns.take(group, signal, () => readAll(job, signal)),
  }
}

/** So many at once, of each group one: nobody's calendar keeps another group waiting. */
function createTurns(atOnce: number) {
  const running = new Set<string>()
  let waiting: { group: string; begin(): void }[] = []
  const next = () => {
    while (running.size < atOnce) {
      const one = waiting.find(({ group }) => !running.has(group))
      if (!one) return
      waiting = waiting.filter(other => other !== one)
      running.add(one.group)
      one.begin()
    }
  }
  return {
    async take<Result>(group: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
      signal.throwIfAborted()
      await new Promise<void>((resolve, reject) => {
        const abort = () => {
          waiting = waiting.filter(other => other !== one)
          reject(signal.reason)
        }
        const one = {
          group,
          begin: () => {
            signal.removeEventListener('abort', abort)
            resolve()
          },
        }
        signal.addEventListener('abort', abort, { once: true })
        waiting.push(one)
        next()
      })
      try {
        return await work()
      } finally {
        running.delete(group)
        next()
      }
    },
  }
}
