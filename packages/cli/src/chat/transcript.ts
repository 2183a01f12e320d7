import type { EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { cardState } from './cards.ts'
import { entryBlock } from './entry-text.ts'

/** Prints each entry of a chat once, and later only what changed on its card. */
export function createTranscript(assistant: string, print: (text: string) => void) {
  const shown = new Set<string>()
  const cardLines = new Map<string, readonly string[]>()
  const files: FileAnswer[] = []

  return {
    /** the number that a file was shown with, from 1 */
    file: (number: number): FileAnswer | undefined => files[number - 1],
    /** it is on the screen already, because it was typed here */
    skip: (key: string) => void shown.add(key),
    show(entry: EntryAnswer): void {
      if (entry.direction === 'out' && entry.status === 'pending') return
      const lines = cardState(entry)
      const before = cardLines.get(entry.key) ?? []
      cardLines.set(entry.key, lines)
      if (!shown.has(entry.key)) {
        shown.add(entry.key)
        print(entryBlock(entry, assistant, file => `${files.push(file)}, /save ${files.length}`))
        return
      }
      const added = lines.filter(line => !before.includes(line))
      if (added.length > 0) print(added.map(line => `│ ${line}`).join('\n'))
    },
  }
}
