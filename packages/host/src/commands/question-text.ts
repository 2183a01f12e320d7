import type { Group } from '@hatchway/protocol'
import type { QuestionRow } from '../store/types.ts'

type Questions = QuestionRow['questions']

/** On one line: nothing in a label can pass for another option. */
const oneLine = (text: string) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()

/** What a person reads who gets text only. */
export function textOfQuestions(
  questions: Questions,
  group: Pick<Group, 'main' | 'requires_trigger' | 'trigger'>,
): string {
  const blocks = questions.map(({ question, options = [] }, i) => {
    const lines = options.map(
      ({ label, description = '' }, j) =>
        `${j + 1}. ${oneLine(label)}${description.trim() === '' ? '' : `: ${oneLine(description)}`}`,
    )
    const number = questions.length > 1 ? `Question ${i + 1} of ${questions.length}: ` : ''
    return [`${number}${question.trim()}`, ...lines].join('\n')
  })
  return [...blocks, howToAnswer(questions, group)].join('\n\n')
}

function howToAnswer(
  questions: Questions,
  { main, requires_trigger, trigger }: Pick<Group, 'main' | 'requires_trigger' | 'trigger'>,
): string {
  const words =
    main || !requires_trigger
      ? 'in your own words'
      : `in your own words, calling ${trigger === null ? 'the agent' : oneLine(trigger)}`
  const hasOptions = questions.some(({ options = [] }) => options.length > 0)
  const how = hasOptions ? `with a number or ${words}` : words
  return questions.length > 1 ? `Answer one after the other, ${how}.` : `Answer ${how}.`
}
