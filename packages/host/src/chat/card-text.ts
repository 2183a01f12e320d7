import type { ApprovalRow, QuestionRow } from '../store/types.ts'
import { endingOf } from './approvals/text.ts'

/** What the message of a card says once it has changed, where people cannot see the card itself. */
export const changedApproval = (row: ApprovalRow): string =>
  `The agent wanted to ${row.action.summary}\n\n${endingOf(row)}`

const endings = {
  open: '',
  answered: '',
  expired: 'Nobody answered in time.',
  withdrawn: 'It is no longer needed.',
} as const

export const changedQuestion = ({
  questions,
  answers,
  status,
}: Pick<QuestionRow, 'questions' | 'answers' | 'status'>): string =>
  [
    ...questions.map(({ question }, index) => {
      const given = answers[index]
      return given ? `${question}\n→ ${given.answer} (${given.by})` : question
    }),
    ...(endings[status] === '' ? [] : [endings[status]]),
  ].join('\n\n')
