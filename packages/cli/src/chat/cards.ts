import type { ApprovalAnswer, EntryAnswer, QuestionAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'

/** How an approval ended; undefined while it waits. */
export function approvalEnding({ status, decided_by, words, always }: ApprovalAnswer): string | undefined {
  const by = visible(decided_by ?? 'somebody')
  switch (status) {
    case 'open':
      return undefined
    case 'allowed':
      return always ? `Always allowed by ${by}.` : `Allowed by ${by}.`
    case 'denied':
      return words === null ? `Denied by ${by}.` : `Denied by ${by}: ${visible(words)}`
    case 'expired':
      return 'Expired without a decision, so it was denied.'
    case 'withdrawn':
      return 'No longer needed.'
  }
}

/** The answers to a question so far, and how it ended. */
function questionState({ answers, status }: QuestionAnswer): string[] {
  const isOne = answers.length === 1
  const given = answers.flatMap((answer, i) =>
    answer ? [`${isOne ? 'Answered' : `Question ${i + 1} answered`} by ${answer.by}: ${answer.answer}`] : [],
  )
  const next = answers.indexOf(null)
  const ending = {
    open: given.length > 0 && next !== -1 ? [`Question ${next + 1} is next.`] : [],
    answered: [],
    expired: ['Expired without an answer.'],
    withdrawn: ['No longer needed.'],
  }
  return [...given, ...ending[status]].map(visible)
}

/** The state of the question or approval of an entry, a line each. */
export function cardState({ question, approval }: EntryAnswer): string[] {
  if (question) return questionState(question)
  const ending = approval && approvalEnding(approval)
  return ending === undefined ? [] : [ending]
}
