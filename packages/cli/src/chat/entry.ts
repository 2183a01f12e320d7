import type { EntryAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'
import { endingOf } from './approval.ts'
import { stateOf as stateOfQuestion } from './question.ts'

/** What has become of what it asks, a line for each thing there is to say. */
export const stateOf = ({ question, approval }: EntryAnswer): string[] => {
  if (question) return stateOfQuestion(question)
  const ending = approval && endingOf(approval)
  return ending === undefined ? [] : [ending]
}

/** What was said, on lines of its own behind a margin. Nothing in it reaches the terminal as a command. */
export const textOf = (entry: EntryAnswer, margin: string): string => {
  const lines = entry.text.split('\n').map(line => `${margin}${visible(line.replace(/\r$/, ''))}`)
  if (entry.kind === 'reaction') return `${margin}(reaction) ${visible(entry.text)}`
  return [...lines, ...stateOf(entry).map(line => `${margin}${line}`)].join('\n')
}

/** With who said it and when. */
export const entryOf = (entry: EntryAnswer, assistant: string): string => {
  const time = new Date(entry.at)
  const two = (value: number) => String(value).padStart(2, '0')
  const who = visible(entry.sender ?? assistant)
  const fate = entry.status === 'failed' ? `  (not delivered: ${visible(entry.error ?? '')})` : ''
  return `${two(time.getHours())}:${two(time.getMinutes())} ${who}${fate}\n${textOf(entry, '│ ')}`
}
