import type { AgentStore, StepRow } from '../store/agent-types.ts'

/**
 * What happens in a run, for those who look at it later. Written in bunches, as each is a commit, and within bounds: a
 * run that says too much is told so once. Losing it loses no work, so a store that fails is only asked again.
 */
export interface Transcript {
  add(kind: string, text: string, name?: string | null): void
  /** kept beyond the bounds: the few things everybody looks for */
  keep(kind: string, text: string): void
  flush(): void
  /** what cannot be written now is lost */
  close(): void
}

const stepLimit = 5000
const sizeLimit = 5_000_000
const textLimit = 50_000
const bunch = 200
const bunchSize = 500_000
const gatherMs = 100
/** how long the store is left alone when it failed */
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
    if (!hasFailed && (waiting.length >= bunch || waitingSize >= bunchSize)) flush()
    else timer ??= setTimeout(flush, gatherMs)
  }

  return {
    add(kind, text, name = null) {
      if (full) return
      count++
      size += Math.min(text.length, textLimit)
      full = count > stepLimit || size > sizeLimit
      if (full) put('notice', 'This run says too much; the rest of it is not written down.', null)
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
