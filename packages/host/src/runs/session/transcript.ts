import type { AgentStore, StepRow } from '../../store/types.ts'

/**
 * What happens in a run, for people who read it later. Steps are written in batches, as each write is a commit, and up to
 * a limit, which the transcript mentions when it is reached. Losing it loses no work: if the store fails, it is only
 * tried again.
 */
export interface Transcript {
  add(kind: string, text: string, name?: string | null): void
  /** written beyond the limit, too: the few things everybody looks for */
  keep(kind: string, text: string): void
  flush(): void
  /** steps that cannot be written now are lost */
  close(): void
}

const stepLimit = 5000
const sizeLimit = 5_000_000
const textLimit = 50_000
const batchSteps = 200
const batchCharacters = 500_000
const gatherMs = 100
/** before the store is tried again after a failure */
const retryMs = 1000

export function createTranscript(options: {
  runId: string
  store: Pick<AgentStore, 'addSteps'>
  now(): number
  failed(error: unknown): void
}): Transcript {
  const { runId, store, now } = options
  let waiting: StepRow[] = []
  let waitingSize = 0
  let count = 0
  let size = 0
  let full = false
  let hasFailed = false
  let timer: NodeJS.Timeout | undefined

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.length === 0) return
    try {
      store.addSteps(waiting)
      waiting = []
      waitingSize = 0
    } catch (error) {
      options.failed(error)
      timer = setTimeout(flush, retryMs)
      hasFailed = true
      return
    }
    hasFailed = false
  }
  const put = (kind: string, text: string, name: string | null) => {
    const note = text.slice(0, textLimit).toWellFormed()
    waiting.push({ runId, at: now(), kind, name, text: note })
    waitingSize += note.length
    if (!hasFailed && (waiting.length >= batchSteps || waitingSize >= batchCharacters)) flush()
    else timer ??= setTimeout(flush, gatherMs)
  }

  return {
    add(kind, text, name = null) {
      if (full) return
      count++
      size += Math.min(text.length, textLimit)
      full = count > stepLimit || size > sizeLimit
      if (full) put('notice', 'The transcript of this run is too long; the rest of it is not kept.', null)
      else put(kind, text, name?.slice(0, 200) ?? null)
    },
    keep: (kind, text) => put(kind, text, null),
    flush,
    close() {
      flush()
      clearTimeout(timer)
    },
  }
}
