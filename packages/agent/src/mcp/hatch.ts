import { randomUUIDv7 } from 'node:crypto'
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CommandType,
  isRefusal,
  parseStrict,
  type Receipt,
  type Refusal,
  refusal,
  translate,
} from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { type Answer, awaitAnswer, createBells, takeAnswer } from './answer.ts'
import { reasonOf } from './failure.ts'

/**
 * One request through the hatch, from the agent's side. It ends in exactly one of these, and the agent is told which:
 *
 *   unsent      the file was never there: the request is not valid, or could not be written. Nothing happened.
 *   answered    the host has decided, and its receipt says what (promise 5).
 *   withdrawn   the host had not taken the file when the time was up or the caller gave up; it was taken back, so
 *               nothing happened and nothing will. The host claims by renaming: either it has the file or we do.
 *   unknown     the host took the file and no receipt that can be read came. It may have happened or not.
 */
export type Outcome =
  | { state: 'unsent'; error: Refusal | { code: 'not_sent'; message: string } }
  | { state: 'answered'; receipt: Receipt }
  | { state: 'withdrawn'; id: string; reason: string }
  | { state: 'unknown'; id: string; reason: string }

export interface HatchOptions {
  /** the group's directory as it is mounted here */
  ipc: string
  timeoutMs: number
  /** the largest file the host reads: of a larger one it cannot even read who asked */
  fileBytes: number
  /** `off`: only look, never listen */
  events: 'auto' | 'off'
}

interface Waiting {
  signal: AbortSignal
  /** called once the file lies there */
  posted?(id: string): void
}

export interface Hatch {
  request(type: CommandType, payload: Record<string, unknown>, waiting: Waiting): Promise<Outcome>
}

/** As deep as the host reads with its usual configuration; no tool comes near it. */
const depth = 64
/** Answers that came too late are cleared away with the next request; more than these are not remembered. */
const maxAbandoned = 100

export function createHatch({ ipc, timeoutMs, fileBytes, events }: HatchOptions): Hatch {
  const responses = join(ipc, 'responses')
  const bells = createBells(responses)
  const abandoned = new Set<string>()

  const clearAbandoned = () => {
    for (const id of abandoned) if (takeAnswer(responses, id)) abandoned.delete(id)
  }
  const abandon = (id: string) => {
    abandoned.add(id)
    const [oldest] = abandoned
    if (abandoned.size > maxAbandoned && oldest !== undefined) abandoned.delete(oldest)
  }

  return {
    async request(type, payload, { signal, posted }) {
      const id = randomUUIDv7()
      const directory = type === 'send_message' || type === 'react' ? 'messages' : 'tasks'
      const content = JSON.stringify({ version: 1, id, type, payload, sent_at: new Date().toISOString() })
      const refused = refusedByRule(directory, content, fileBytes)
      if (refused) return { state: 'unsent', error: refused }
      clearAbandoned()

      // Listened to before the file is posted: an answer in between would ring no bell (lesson 17).
      const bell = events === 'auto' ? bells.listen(id) : undefined
      try {
        if (signal.aborted) return unsent('the call was cancelled before anything was sent')
        let name: string
        try {
          name = post(join(ipc, directory), content)
        } catch (error) {
          return unsent(`the request could not be written: ${reasonOf(error)}`)
        }
        posted?.(id)
        const answer = await awaitAnswer({ responses, id, bell, signal, timeoutMs })
        if (answer) return outcomeOf(id, answer)

        const why = signal.aborted
          ? 'the call was cancelled'
          : `no answer came within ${Math.round(timeoutMs / 1000)} seconds`
        const withdrawal = withdraw(join(ipc, directory, name))
        if (withdrawal === 'withdrawn') return { state: 'withdrawn', id, reason: why }
        // The host may have answered just now, between the last look and the attempt to withdraw.
        const late = takeAnswer(responses, id)
        if (late) return outcomeOf(id, late)
        abandon(id)
        return { state: 'unknown', id, reason: withdrawal === 'taken' ? why : `${why}; ${withdrawal}` }
      } finally {
        bell?.close()
      }
    },
  }
}

const unsent = (message: string): Outcome => ({ state: 'unsent', error: { code: 'not_sent', message } })

const outcomeOf = (id: string, answer: Answer): Outcome =>
  'receipt' in answer
    ? { state: 'answered', receipt: answer.receipt }
    : { state: 'unknown', id, reason: answer.problem }

/** What the host would refuse is refused here, by the same rules and in the same words, before anything is written. */
function refusedByRule(directory: string, content: string, fileBytes: number): Refusal | undefined {
  if (Buffer.byteLength(content) > fileBytes) {
    return refusal('too_large', `the request is larger than the ${fileBytes} bytes the host reads`)
  }
  const parsed = parseStrict(content, { depth })
  if (!('body' in parsed)) return parsed.refusal
  const { command } = translate({ directory, body: parsed.body })
  return isRefusal(command) ? command : undefined
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
