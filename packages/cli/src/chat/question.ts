import type { QuestionAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'

/** What has become of a question, a line for each thing there is to say; none while nobody has answered. */
export function stateOf({ answers, status }: QuestionAnswer): string[] {
  const isOne = answers.length === 1
  const given = answers.flatMap((answer, i) =>
    answer ? [`${isOne ? 'Answered' : `Question ${i + 1} answered`} by ${answer.by}: ${answer.answer}`] : [],
  )
  const next = answers.indexOf(null)
  const ending = {
    open: given.length > 0 && next !== -1 ? [`Question ${next + 1} is next.`] : [],
    answered: [],
    expired: ['Nobody answered in time.'],
    withdrawn: ['It is no longer needed.'],
  }
  return [...given, ...ending[status]].map(visible)
}
