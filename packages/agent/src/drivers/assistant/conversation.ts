import { mkdirSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { uuid7 } from '@hatchway/protocol/uuid'
import { post, reasonOf } from '@hatchway/spool'
import { z } from 'zod'
import { jsonIn, readHostFile } from '../../mcp/read-file.ts'
import { type Message, messageSchema, textPart, withAllResults, withImages } from './messages.ts'
import { withoutOldest } from './window.ts'

/**
 * The conversation with the model, kept in the agent's home so that the next run goes on with it. The whole file is
 * written anew before each question to the model and after each turn, and renamed into its place: a run that is killed
 * leaves the conversation as it was at one of these moments. The agent can write to this file, and nobody relies on it.
 */
export interface Conversation {
  readonly id: string
  messages: Message[]
  save(): void
}

export interface OpenedConversation {
  conversation: Conversation
  /** why the one that was asked for is not gone on with */
  problem?: string
}

const largest = 8_388_608
const mostKept = 20
const interrupted =
  'The run was interrupted during this call. It is unknown whether it happened: look before you try again.'

const fileSchema = z.object({ version: z.literal(1), messages: z.array(messageSchema) })
const idForm = /^[0-9a-f-]{36}$/

export function openConversation(
  home: string,
  wanted: string | null,
  notice: (text: string) => void,
): OpenedConversation {
  const directory = join(home, '.hatchway', 'assistant')
  const found = wanted === null ? { messages: [] } : load(directory, wanted)
  const isKnown = wanted !== null && 'messages' in found
  let complaint: string | undefined
  const conversation: Conversation = {
    id: isKnown ? wanted : uuid7(),
    messages: 'messages' in found ? withAllResults(found.messages, interrupted) : [],
    save() {
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        post(directory, contentOf(conversation.messages), { name: `${conversation.id}.json`, mode: 0o600 })
        complaint = undefined
      } catch (error) {
        const reason = reasonOf(error)
        if (reason !== complaint) notice(`The conversation cannot be kept: ${reason}.`)
        complaint = reason
      }
    },
  }
  if (!isKnown) forgetOldest(directory)
  return { conversation, ...('problem' in found ? { problem: found.problem } : {}) }
}

function load(directory: string, id: string): { messages: Message[] } | { problem: string } {
  if (!idForm.test(id)) return { problem: 'it is not one of this agent’s' }
  const file = readHostFile(join(directory, `${id}.json`), largest)
  if ('missing' in file) return { problem: 'its file is not there' }
  if ('problem' in file) return { problem: file.problem }
  const parsed = fileSchema.safeParse(jsonIn(file.text))
  return parsed.success ? { messages: parsed.data.messages } : { problem: 'its file cannot be understood' }
}

/** No larger than what is read again: images go first, then the oldest messages. */
function contentOf(messages: readonly Message[]): string {
  const write = (kept: readonly Message[]) => JSON.stringify({ version: 1, messages: kept })
  const whole = write(messages)
  if (Buffer.byteLength(whole) <= largest) return whole
  let kept: readonly Message[] = withImages(messages, () => textPart('(an image that is no longer kept)'))
  for (let content = write(kept); ; content = write(kept)) {
    if (Buffer.byteLength(content) <= largest || kept.length === 0) return content
    kept = withoutOldest(kept)
  }
}

function forgetOldest(directory: string): void {
  const files = names(directory)
    .filter(name => name.endsWith('.json'))
    .map(name => ({
      path: join(directory, name),
      at: statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => b.at - a.at)
  for (const { path } of files.slice(mostKept - 1)) {
    try {
      unlinkSync(path)
    } catch (error) {
      console.error(`An old conversation stays: ${reasonOf(error)}`)
    }
  }
}

function names(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
