import type { QuestionAnswer, QuestionRow } from '../../store/types.ts'

type Question = QuestionRow['questions'][number]
export type Choice = Pick<QuestionAnswer, 'answer' | 'option'>

/** The form in which two labels are the same to a person. */
const plain = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\s+/gu, ' ')
    .trim()
    .replace(/(?<=.)[.!,;]$/u, '')

/** `2`, `2.`, `(2)`, `#2`, `option 2`, `2️⃣` */
const numberForm = /^(?:option|number|no\.?)?\s*[#(]?\s*(\d{1,3})\ufe0f?\u20e3?\s*[.,;:)]?$/iu

/** more than any label has, and little enough to be looked at in every way */
const longestOption = 1000

export const choiceOf = ({ options = [] }: Question, number: number): Choice | undefined => {
  const option = options[number - 1]
  return option && { answer: option.label, option: number }
}

/** Which option is meant. A label counts before a number: where options are numbers, one says the number one means. */
function optionIn(text: string, question: Question): Choice | undefined {
  if (text.length > longestOption) return undefined
  const said = plain(text)
  const index = (question.options ?? []).findIndex(({ label }) => plain(label) === said)
  if (index !== -1) return choiceOf(question, index + 1)
  const [, number] = numberForm.exec(text.normalize('NFKC').trim()) ?? []
  return number === undefined ? undefined : choiceOf(question, Number(number))
}

const numbersOnly = /^[\d\s#.)]+$/u

/** Options of several questions in one message: `1, 3`, `1 3`, or each on a line of its own. */
function optionsIn(text: string, questions: readonly Question[]): Choice[] | undefined {
  const parts = text
    .split(numbersOnly.test(text) ? /\s+/u : /[\n,;]+/u)
    .map(part => part.trim())
    .filter(part => part !== '')
  if (parts.length < 2 || parts.length > questions.length) return undefined
  const choices = questions.slice(0, parts.length).map((question, i) => optionIn(parts[i] ?? '', question))
  return choices.every(choice => choice !== undefined) ? choices : undefined
}

/**
 * What a message answers of the questions that are still open, the first of them first. Own words only count where the
 * message is for the agent: among people who talk to each other, only what names an option is surely an answer.
 */
export function answersIn(
  text: string,
  questions: readonly Question[],
  isForAgent: boolean,
): readonly Choice[] | undefined {
  const [first] = questions
  const words = text.trim()
  if (!first || words === '') return undefined
  const option = optionIn(words, first)
  if (option) return [option]
  return optionsIn(words, questions) ?? (isForAgent ? [{ answer: words, option: null }] : undefined)
}
