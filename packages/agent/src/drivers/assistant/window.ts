import type { ToolDefinition } from './apis/types.ts'
import { type Message, type Part, textIn, textPart, userMessage } from './messages.ts'

/**
 * Keeps the conversation within what the model can hold. When it grows too long, the older part becomes a summary that
 * the model itself writes; if that fails, it goes, except for what was asked last. It is cut only where no call loses
 * its result. Sizes are estimated, and corrected by what the API says it counted.
 */

const perImage = 1500
const perMessage = 8
/** what an API writes around a tool */
const perTool = 12

export const tokensIn = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

const tokensInParts = (parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + (part.type === 'text' ? tokensIn(part.text) : perImage), 0)

function tokensOf(message: Message): number {
  switch (message.role) {
    case 'user':
      return perMessage + tokensInParts(message.parts)
    case 'assistant':
      return (
        perMessage +
        (message.own
          ? tokensIn(JSON.stringify(message.own.items))
          : tokensIn(message.text) +
            message.calls.reduce((sum, { name, input }) => sum + perMessage + tokensIn(name + input), 0))
      )
    case 'tool':
      return message.results.reduce((sum, { parts }) => sum + perMessage + tokensInParts(parts), 0)
  }
}

export const tokensOfAll = (messages: readonly Message[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0)

export const tokensOfTools = (tools: readonly ToolDefinition[]): number =>
  tools.reduce((sum, tool) => sum + perTool + tokensIn(JSON.stringify(tool)), 0)

/** What is left when the first message, and what belongs to it, is gone. */
export function withoutOldest(messages: readonly Message[]): readonly Message[] {
  const next = messages.findIndex(({ role }, index) => index > 0 && role !== 'tool')
  return next === -1 ? [] : messages.slice(next)
}

export interface Compaction {
  /** how many tokens the messages may have */
  room: number
  summarise(messages: readonly Message[]): Promise<string>
  notice(text: string): void
}

const opening = 'Summary of this conversation so far, written by you:'

export async function compacted(
  messages: readonly Message[],
  { room, summarise, notice }: Compaction,
): Promise<Message[]> {
  const cut = cutFor(messages, room / 2)
  const kept = messages.slice(cut)
  const older = messages.slice(0, cut)
  let first: Message[] = []
  if (older.length > 0) {
    try {
      const summary = (await summarise(older)).trim()
      if (summary === '') throw new Error('it is empty')
      first = [userMessage(`${opening}\n${shortened(summary, room)}`)]
      notice(`The conversation was getting long: ${older.length} older messages are now a summary.`)
    } catch (error) {
      notice(
        `The conversation is too long and could not be summarised (${String(error)}); the oldest messages are dropped.`,
      )
      const asked = kept.some(({ role }) => role === 'user')
        ? undefined
        : older.findLast(({ role }) => role === 'user')
      first = [userMessage('(Older messages of this conversation are gone.)'), ...(asked ? [asked] : [])]
    }
  }
  return fitted([...first, ...kept], room)
}

/** Where to cut so that what follows takes at most so many tokens, if there is such a place; never before a result. */
function cutFor(messages: readonly Message[], room: number): number {
  let cut = messages.length
  let size = 0
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]
    if (!message) break
    size += tokensOf(message)
    // The last exchange stays, however long it is.
    if (size > room && cut < messages.length) break
    if (message.role !== 'tool') cut = index
  }
  return cut === messages.length ? 0 : cut
}

/** Texts that are too long for all of it to fit lose their middle. */
function fitted(messages: readonly Message[], room: number): Message[] {
  let fitting = [...messages]
  for (let longest = room; longest > 100 && tokensOfAll(fitting) > room; longest /= 2) {
    const short = (parts: readonly Part[]) =>
      parts.map(part => (part.type === 'text' ? textPart(shortened(part.text, longest)) : part))
    fitting = fitting.map(message => {
      if (message.role === 'user') return { ...message, parts: short(message.parts) }
      if (message.role === 'assistant') return message
      return {
        ...message,
        results: message.results.map(result => ({ ...result, parts: short(result.parts) })),
      }
    })
  }
  return fitting
}

/** At most about so many tokens of a text: its beginning and its end. */
export function shortened(text: string, tokens: number): string {
  if (tokensIn(text) <= tokens) return text
  // A character may have several bytes.
  const characters = Math.max(40, Math.floor((tokens * 4 * text.length) / Buffer.byteLength(text)) - 40)
  const head = Math.ceil(characters * 0.6)
  return `${text.slice(0, head)}\n… (${text.length - characters} characters left out) …\n${text.slice(head - characters)}`.toWellFormed()
}

/** The older part of a conversation as one text, for a summary. */
export function transcriptOf(messages: readonly Message[], tokens: number): string {
  const lines = messages.map(message => {
    if (message.role === 'user') return `User: ${shortened(textIn(message.parts), 1000)}`
    if (message.role === 'tool')
      return message.results
        .map(({ name, parts }) => `Result of ${name}: ${shortened(textIn(parts), 300)}`)
        .join('\n')
    const calls = message.calls.map(({ name, input }) => `\n(called ${name} with ${shortened(input, 200)})`)
    return `You: ${shortened(message.text, 1000)}${calls.join('')}`
  })
  return shortened(lines.join('\n'), tokens)
}
