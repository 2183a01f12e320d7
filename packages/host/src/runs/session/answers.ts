import type { SessionParts } from './parts.ts'
import type { Turn } from './turn-ledger.ts'

/** Stores what the agent says. An answer and the inputs that it answers are one commit. */
export interface Answers {
  /**
   * Ends a turn with words of the agent, or of the host about it; how many inputs it answered. Throws, with nothing done,
   * if the store fails.
   */
  finishTurn(turn: Turn, text: string | null, author: Author, how?: 'stopped'): number
  /** Says something in the middle of a turn; whether it was said. Throws, with nothing done, if the store fails. */
  sayMeanwhile(text: string): boolean
}

type Author = 'agent' | 'host'

const resultKept = 2000
const messageLimit = 1_000_000

export function createAnswers({ options, ledger, report, transcript, calls }: SessionParts): Answers {
  /** false: the run has ended in the store, and nothing is said */
  const commit = (usedIds: readonly number[], text: string | undefined, author: Author) => {
    const message = text === undefined ? undefined : options.say(text, author)
    const isStored = options.store.finishTurn({
      runId: options.start.run_id,
      group: options.group.folder,
      usedIds,
      sessionId: report.sessionId,
      keepSession: options.keepSession && !report.isForgotten,
      message,
    })
    return { isStored, isSaid: isStored && message !== undefined }
  }

  return {
    finishTurn(turn, text, author, how) {
      const words = wordsIn(text)
      const { isStored, isSaid } = commit(turn.rowIds, words, author)
      // From here on nothing may throw: the same result would be handled again, and said twice.
      ledger.record(turn, how)
      if (!isStored) return 0
      report.spoke = true
      report.answered ||= turn.answers.length > 0
      if (words !== undefined) {
        report.result = words.slice(0, resultKept)
        transcript.keep('result', words)
        transcript.flush()
      }
      if (isSaid) calls.said()
      return turn.answers.length
    },
    sayMeanwhile(text) {
      const words = wordsIn(text)
      if (words === undefined || !commit([], words, 'agent').isSaid) return false
      transcript.keep('text', words)
      calls.said()
      return true
    },
  }
}

const wordsIn = (text: string | null): string | undefined =>
  text === null || text.trim() === '' ? undefined : text.slice(0, messageLimit).toWellFormed()
