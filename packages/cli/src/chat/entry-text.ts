import type { EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { timeOfDay } from '../format.ts'
import { visible } from '../text.ts'
import { cardState } from './cards.ts'
import { attachmentLines } from './files.ts'

type Mark = (file: FileAnswer) => string

/** An entry as lines, each with a margin in front. Nothing in it reaches the terminal as a control sequence. */
export function entryText(entry: EntryAnswer, margin: string, mark: Mark = ({ id }) => id): string {
  if (entry.kind === 'reaction') return `${margin}(reaction) ${visible(entry.text)}`
  const said = entry.text === '' && entry.attachments ? [] : entry.text.split('\n')
  return [
    ...said.map(line => visible(line.replace(/\r$/, ''))),
    ...cardState(entry),
    ...attachmentLines(entry, mark),
  ]
    .map(line => margin + line)
    .join('\n')
}

/** With the time and the sender above it. */
export function entryBlock(entry: EntryAnswer, assistant: string, mark: Mark): string {
  const failure = entry.status === 'failed' ? `  (not delivered: ${visible(entry.error ?? '')})` : ''
  const sender = visible(entry.sender ?? assistant)
  return `${timeOfDay(entry.at)} ${sender}${failure}\n${entryText(entry, '│ ', mark)}`
}
