import { existsSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isRefusal, type Progress, type Receipt, type Refusal, refusal, translate } from '@hatchway/protocol'
import { uuid7 } from '@hatchway/protocol/uuid'
import { post, reasonOf } from '@hatchway/spool'
import {
  type Answer,
  awaitAnswer,
  clearProgress,
  createAnswerWatchers,
  createProgressReader,
  takeAnswer,
} from './answer.ts'
import { complain } from './failure.ts'

/**
 * One request through the hatch, from the agent's side. It ends in exactly one of these, and the agent is told which:
 *
 *   unsent      the file was never there: the request is not valid, or could not be written. Nothing happened.
 *   answered    the host has decided, and its receipt says what (promise 5).
 *   withdrawn   the host had not taken the file when the time was up or the caller gave up; it was taken back, so
 *               nothing happened and nothing will. The host claims by renaming: either it has the file or we do.
 *   unknown     the host took the file and no receipt that can be read came. It may have happened or not. Where the
 *               host may still be at it, it was asked to stop.
 */
export type Outcome =
  | { state: 'unsent'; error: Refusal | { code: 'not_sent'; message: string } }
  | { state: 'answered'; receipt: Receipt }
  | { state: 'withdrawn'; id: string; reason: string }
  | { state: 'unknown'; id: string; reason: string; toldToStop: boolean }

export interface HatchOptions {
  /** the group's directory as it is mounted here */
  ipc: string
  /** how long the host may take to begin, and to answer where nothing else is said */
  timeoutMs: number
  /** the largest file the host reads: of a larger one it cannot even read who asked */
  fileBytes: number
  /** `off`: poll, watch nothing */
  events: 'auto' | 'off'
}

interface Waiting {
  signal: AbortSignal
  /** called once the file lies there */
  posted?(id: string): void
  /** how long the host allows itself for what it has begun; it says so itself when that is over */
  hostMs?: number | undefined
  progress?: ((step: Progress) => void) | undefined
}

export interface Hatch {
  request(type: string, payload: Record<string, unknown>, waiting: Waiting): Promise<Outcome>
}

/** As deep as the host reads with its usual configuration; no tool comes near it. */
const depth = 64
/** Answers that came too late are cleared away with the next request; more than these are not remembered. */
const maxAbandoned = 100
/** How much later than it says the host may answer. */
const marginMs = 10_000
/** No person is waited for longer, whatever a file says. */
const longestPersonMs = 86_400_000
/** What the host may be at for minutes is stopped when nobody waits for it. Anything else only while it is not decided. */
const stoppable: ReadonlySet<string> = new Set(['call_service', 'ask_user', 'check_shell'])

export function createHatch({ ipc, timeoutMs, fileBytes, events }: HatchOptions): Hatch {
  const responses = join(ipc, 'responses')
  const watchers = createAnswerWatchers(responses)
  const abandoned = new Set<string>()

  const clearAbandoned = () => {
    for (const id of abandoned) {
      if (!takeAnswer(responses, id)) continue
      clearProgress(responses, id)
      abandoned.delete(id)
    }
  }
  const abandon = (id: string) => {
    clearProgress(responses, id)
    abandoned.add(id)
    const [oldest] = abandoned
    if (abandoned.size > maxAbandoned && oldest !== undefined) abandoned.delete(oldest)
  }

  /** Nobody waits for what comes of it: the host answers the request itself, which is cleared away like this answer. */
  const tellToStop = (request_id: string, unless_begun: boolean): boolean => {
    const id = uuid7()
    try {
      const payload = { request_id, ...(unless_begun ? { unless_begun } : {}) }
      post(join(ipc, 'tasks'), envelope(id, 'cancel_request', payload))
      abandon(id)
      return true
    } catch (error) {
      complain(`the host could not be asked to stop: ${reasonOf(error)}`)
      return false
    }
  }

  return {
    async request(type, payload, { signal, posted, hostMs, progress }) {
      const id = uuid7()
      const directory = type === 'send_message' || type === 'react' ? 'messages' : 'tasks'
      const content = envelope(id, type, payload)
      const refused = refusedByRule(directory, content, fileBytes)
      if (refused) return { state: 'unsent', error: refused }
      clearAbandoned()

      // Watched before the file is posted: the event of an answer in between would be missed.
      const watcher = events === 'auto' ? watchers.watch(id) : undefined
      try {
        if (signal.aborted) return unsent('the call was cancelled before anything was sent')
        let name: string
        try {
          name = post(join(ipc, directory), content)
        } catch (error) {
          return unsent(`the request could not be written: ${reasonOf(error)}`)
        }
        posted?.(id)
        const path = join(ipc, directory, name)
        const begun = performance.now()
        const wholeMs = hostMs === undefined ? timeoutMs : hostMs + Math.min(timeoutMs, marginMs)
        const toBeginMs = Math.min(timeoutMs, wholeMs)
        let deadline = begun + toBeginMs
        const readProgress = createProgressReader(responses, id, step => {
          // First a person decides, and then the host takes as long as it would have taken without one.
          if (step.until !== undefined) {
            const personMs = Math.min(longestPersonMs, Date.parse(step.until) - Date.now())
            deadline = Math.max(deadline, performance.now() + personMs + wholeMs)
          }
          progress?.(step)
        })
        const isTold = progress !== undefined
        const wait = () =>
          awaitAnswer({ responses, id, watcher, signal, deadline: () => deadline, readProgress, isTold })
        let answer = await wait()
        // A host that has not even begun by then is not there: nobody waits an hour for it.
        if (!answer && !signal.aborted && begun + wholeMs > deadline && !existsSync(path)) {
          deadline = begun + wholeMs
          answer = await wait()
        }
        if (answer) return outcomeOf(id, answer)

        const why = signal.aborted
          ? 'the call was cancelled'
          : `no answer came within ${Math.round((performance.now() - begun) / 1000)} seconds`
        const withdrawal = withdraw(path)
        if (withdrawal === 'withdrawn') return { state: 'withdrawn', id, reason: why }
        // The host may have answered just now, between the last look and the attempt to withdraw.
        const late = takeAnswer(responses, id)
        if (late) return outcomeOf(id, late)
        abandon(id)
        const isTaken = withdrawal === 'taken'
        return {
          state: 'unknown',
          id,
          reason: isTaken ? why : `${why}; ${withdrawal}`,
          toldToStop: isTaken && tellToStop(id, !stoppable.has(type)) && stoppable.has(type),
        }
      } finally {
        watcher?.close()
      }
    },
  }
}

const unsent = (message: string): Outcome => ({ state: 'unsent', error: { code: 'not_sent', message } })

const outcomeOf = (id: string, answer: Answer): Outcome =>
  'receipt' in answer
    ? { state: 'answered', receipt: answer.receipt }
    : { state: 'unknown', id, reason: answer.problem, toldToStop: false }

const envelope = (id: string, type: string, payload: Record<string, unknown>): string =>
  JSON.stringify({ version: 1, id, type, payload, sent_at: new Date().toISOString() })

/** What the host would refuse is refused here, by the same rules and in the same words, before anything is written. */
function refusedByRule(directory: string, content: string, fileBytes: number): Refusal | undefined {
  if (Buffer.byteLength(content) > fileBytes) {
    return refusal('too_large', `the request is larger than the ${fileBytes} bytes the host reads`)
  }
  const translation = translate(content, { directory, depth })
  if ('refusal' in translation) return translation.refusal
  return isRefusal(translation.command) ? translation.command : undefined
}

/** `taken`: the host has it. Any other text says why it could not be told. */
function withdraw(path: string): 'withdrawn' | 'taken' | string {
  try {
    unlinkSync(path)
    return 'withdrawn'
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'taken'
    return `the request could not be taken back: ${reasonOf(error)}`
  }
}
