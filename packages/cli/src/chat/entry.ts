import type { EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'
import { endingOf } from './approval.ts'
import { filesOf } from './files.ts'
import { stateOf as stateOfQuestion } from './question.ts'

/** What has become of what it asks, a line for each thing there is to say. */
export const stateOf = ({ question, approval }: EntryAnswer): string[] => {
  if (question) return stateOfQuestion(question)
  const ending = approval && endingOf(approval)
  return ending === undefined ? [] : [ending]
}

/** What was said, on lines of its own behind a margin. Nothing in it reaches the terminal as a command. */
export const textOf = (entry: EntryAnswer, margin: string, mark = ({ id }: FileAnswer) => id): string => {
  const said = entry.text === '' && entry.attachments ? [] : entry.text.split('\n')
  const lines = said.map(line => `${margin}${visible(line.replace(/\r$/, ''))}`)
  if (entry.kind === 'reaction') return `${margin}(reaction) ${visible(entry.text)}`
  return [...lines, ...[...stateOf(entry), ...filesOf(entry, mark)].map(line => `${margin}${line}`)].join(
    '\n',
  )
}

/** With who said it and when. */
export const entryOf = (
  entry: EntryAnswer,
  assistant: string,
  mark?: (file: FileAnswer) => string,
): string => {
  const time = new Date(entry.at)
  const two = (value: number) => String(value).padStart(2, '0')
  const who = visible(entry.sender ?? assistant)
  const fate = entry.status === 'failed' ? `  (not delivered: ${visible(entry.error ?? '')})` : ''
  return `${two(time.getHours())}:${two(time.getMinutes())} ${who}${fate}\n${textOf(entry, '│ ', mark)}`
}
