import { randomUUID } from 'node:crypto'
import type { SDKUserMessage } from '@anthropic-ai/claude-agent-sdk'

/** What Claude is told, as it comes. The SDK reads it while a turn runs, which is how a follow-up reaches that turn. */
export interface InputStream {
  push(text: string, ids: readonly string[]): void
  /** everything that Claude has not said to have read, then what comes; ends an earlier reading */
  messages(): AsyncIterable<SDKUserMessage>
  /** the ids of a message that Claude says it has read, given once */
  read(uuid: string): readonly string[]
  /** nothing of what came so far is given, or given again */
  drop(): void
  end(): void
}

export function createInputStream(): InputStream {
  const unread = new Map<string, { message: SDKUserMessage; ids: readonly string[] }>()
  let waiting: SDKUserMessage[] = []
  let reading = 0
  let ended = false
  let wake: () => void = () => {}

  async function* following(own: number) {
    while (own === reading) {
      const message = waiting.shift()
      if (message) yield message
      else if (ended) return
      else {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    }
  }
  return {
    push(text, ids) {
      const uuid = randomUUID()
      const message: SDKUserMessage = {
        type: 'user',
        message: { role: 'user', content: text },
        parent_tool_use_id: null,
        uuid,
      }
      unread.set(uuid, { message, ids })
      waiting.push(message)
      wake()
    },
    messages() {
      wake()
      waiting = [...unread.values()].map(({ message }) => message)
      return following(++reading)
    },
    read(uuid) {
      const ids = unread.get(uuid)?.ids ?? []
      unread.delete(uuid)
      return ids
    },
    drop() {
      unread.clear()
      waiting = []
    },
    end() {
      ended = true
      wake()
    },
  }
}
