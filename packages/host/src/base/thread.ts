import { Worker } from 'node:worker_threads'

/**
 * The one way to a worker thread. A thread answers one question at a time; whoever has several puts them into a work queue
 * first (keyed-queue.ts). It is
 *
 *   absent     until a question comes, and again after its end
 *   starting   a question waits for it, for `startMs` at most
 *   working    on a question, for `limitMs` at most
 *   idle       until the next question, or for `idleMs`; then it is ended
 *   ending     the next question waits until it is gone: two of them never have the same files open
 *
 * A thread that ends by itself, or is ended because it took too long, fails the question it was at and nothing else:
 * the next question starts another one. `thread-side.ts` is what such a thread runs.
 */
export interface Thread<Question, Answer> {
  /** an aborted signal ends the thread, and rejects with the signal's reason; otherwise rejects with `ThreadFailed` */
  ask(question: Question, signal?: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export interface ThreadOptions {
  file: URL
  workerData?: unknown
  startMs?: number
  limitMs?: number
  idleMs?: number
  /** after so many it is replaced, for libraries that keep something about every question */
  questions?: number
  memoryMb?: number
  /** it is told to end, and finishes what it is at; left out: it is terminated */
  endsPolitely?: boolean
}

export class ThreadFailed extends Error {
  readonly why: 'not_started' | 'too_slow' | 'ended' | 'closed'

  constructor(why: ThreadFailed['why'], cause?: Error) {
    super(cause?.message ?? messages[why], { cause })
    this.why = why
  }
}

const messages = {
  not_started: 'The thread did not start.',
  too_slow: 'The thread took too long.',
  ended: 'The thread has ended.',
  closed: 'The thread is closed.',
}

/** What is said between the two sides. */
export type ToThread<Question> = { question: Question } | 'end'
export type FromThread<Answer> = { answer: Answer } | 'ready'

interface Asked<Answer> {
  worker: Worker
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export function createThread<Question, Answer>(options: ThreadOptions): Thread<Question, Answer> {
  const { startMs = 30_000, limitMs, idleMs } = options
  let worker: Worker | undefined
  let isReady = false
  let questions = 0
  let asked: Asked<Answer> | undefined
  let timer: NodeJS.Timeout | undefined
  let ending: Promise<void> | undefined
  let isClosed = false

  const start = (): Worker => {
    const started = new Worker(options.file, {
      workerData: options.workerData,
      // It has nothing to look for in the host's environment.
      env: {},
      ...(options.memoryMb === undefined
        ? {}
        : { resourceLimits: { maxOldGenerationSizeMb: options.memoryMb } }),
    })
    let cause: Error | undefined
    isReady = false
    questions = 0
    started.on('message', (message: FromThread<Answer>) => {
      if (asked?.worker !== started) return
      if (message !== 'ready') return settle()?.resolve(message.answer)
      isReady = true
      limit()
    })
    // Without a listener the host would end with it.
    started.on('error', error => {
      cause = error
    })
    started.on('exit', () => {
      if (worker === started) worker = undefined
      if (asked?.worker !== started) return
      settle()?.reject(new ThreadFailed(isClosed ? 'closed' : isReady ? 'ended' : 'not_started', cause))
    })
    return started
  }

  /** The time begins to count when the thread is there. */
  const limit = () => {
    clearTimeout(timer)
    const ms = isReady ? limitMs : startMs
    if (ms !== undefined)
      timer = setTimeout(() => terminate(new ThreadFailed(isReady ? 'too_slow' : 'not_started')), ms)
  }

  /** Nobody waits for it any longer. */
  const settle = () => {
    const settled = asked
    asked = undefined
    clearTimeout(timer)
    worker?.unref()
    if (worker && idleMs !== undefined && !isClosed) timer = setTimeout(end, idleMs).unref()
    return settled
  }

  const leave = (gone: Promise<unknown>) => {
    const mine = gone.then(() => {
      if (ending === mine) ending = undefined
    })
    ending = mine
  }

  const terminate = (reason: unknown) => {
    const leaving = worker
    worker = undefined
    settle()?.reject(reason)
    if (leaving) leave(leaving.terminate())
  }

  const end = () => {
    const leaving = worker
    if (!leaving || options.endsPolitely !== true) return terminate(new ThreadFailed('closed'))
    worker = undefined
    leave(new Promise<void>(resolve => leaving.once('exit', () => resolve())))
    leaving.ref()
    leaving.postMessage('end' satisfies ToThread<Question>)
  }

  return {
    async ask(question, signal) {
      signal?.throwIfAborted()
      if (asked) throw new Error('A thread answers one question at a time.')
      if (worker && options.questions !== undefined && questions >= options.questions) end()
      clearTimeout(timer)
      if (ending) await ending
      if (isClosed) throw new ThreadFailed('closed')
      const abort = () => terminate(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return await new Promise<Answer>((resolve, reject) => {
          worker ??= start()
          worker.ref()
          asked = { worker, resolve, reject }
          questions++
          limit()
          if (signal?.aborted) return abort()
          worker.postMessage({ question } satisfies ToThread<Question>)
        })
      } finally {
        signal?.removeEventListener('abort', abort)
      }
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      end()
      await ending
    },
  }
}
