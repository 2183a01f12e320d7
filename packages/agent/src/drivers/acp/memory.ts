import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { escapeXml } from '@hatchway/protocol'
import { post, reasonOf } from '@hatchway/spool'
import { z } from 'zod'
import { jsonIn, readHostFile } from '../../mcp/read-file.ts'

/**
 * The end of the conversation, for an agent that has to begin a new session: one that keeps none, or has lost it. It is in
 * the agent's home; the agent can write to it, and nobody relies on it.
 */
export interface Memory {
  /** what was said before, as a part of a prompt; empty: nothing */
  earlier(): string
  add(sessionId: string, turn: Turn): void
}

const turnSchema = z.object({ asked: z.string(), answered: z.string() })
type Turn = z.infer<typeof turnSchema>
const fileSchema = z.object({ version: z.literal(1), session_id: z.string(), turns: z.array(turnSchema) })

const largestFile = 1_048_576
const longestText = 4000
const longestInAll = 32_000

export function openMemory(home: string, sessionId: string | null): Memory {
  const directory = join(home, '.hatchway', 'acp')
  let turns = sessionId === null ? [] : load(join(directory, 'conversation.json'), sessionId)
  return {
    earlier: () =>
      turns.length === 0
        ? ''
        : `<earlier_conversation>\n${turns.map(element).join('\n')}\n</earlier_conversation>\nYou have said and heard this in an earlier session, of which only this is kept.\n\n`,
    add(sessionId, { asked, answered }) {
      turns = fitting([...turns, { asked: cut(asked), answered: cut(answered) }])
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        const content = JSON.stringify({ version: 1, session_id: sessionId, turns })
        post(directory, content, { name: 'conversation.json', mode: 0o600 })
      } catch (error) {
        console.error(`The conversation cannot be kept: ${reasonOf(error)}`)
      }
    },
  }
}

function load(path: string, sessionId: string): Turn[] {
  const file = readHostFile(path, largestFile)
  const parsed = fileSchema.safeParse('text' in file ? jsonIn(file.text) : undefined)
  return parsed.success && parsed.data.session_id === sessionId ? fitting(parsed.data.turns) : []
}

/** The newest that fit. */
function fitting(turns: readonly Turn[]): Turn[] {
  let room = longestInAll
  const from = turns.findLastIndex(({ asked, answered }) => {
    room -= asked.length + answered.length
    return room < 0
  })
  return turns.slice(from + 1)
}

const cut = (text: string): string =>
  text.length > longestText ? `${text.slice(0, longestText).toWellFormed()}…` : text

const element = ({ asked, answered }: Turn): string =>
  `<asked>${escapeXml(asked)}</asked>\n<you_answered>${escapeXml(answered)}</you_answered>`
