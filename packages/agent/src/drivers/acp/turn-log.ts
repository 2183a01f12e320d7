import type { SessionUpdate, ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk'
import type { DriverContext } from '../types.ts'

/** What the agent tells of one turn: steps for those who look on, and the answer at its end. */
export interface TurnLog {
  take(update: SessionUpdate): void
  /** its last message, after the last of its tool calls; an earlier one, if that is nothing */
  end(): string | null
}

/** what the host takes as one message, and as one step */
const longestAnswer = 1_000_000
const longestStep = 20_000
const longestName = 200
const mostOpenCalls = 1000
/** how long its arguments may take to be complete */
const argumentsMs = 500

interface OpenCall {
  name: string
  input: string
  isTold: boolean
}

export function openTurnLog(emit: DriverContext['emit']): TurnLog {
  const open = new Map<string, OpenCall>()
  let answer = ''
  let said = ''
  let thought = ''
  let messageId: string | null | undefined

  const step = (kind: 'text' | 'thinking' | 'notice', text: string) => {
    if (text.trim() !== '') emit({ type: 'step', kind, text })
  }
  /** A step for what was said or thought between two other things. */
  const flush = () => {
    step('thinking', thought)
    step('text', said.slice(0, longestStep))
    answer = said.trim() || answer
    said = ''
    thought = ''
  }
  const hear = (piece: string, id: typeof messageId) => {
    if (thought !== '' || id !== messageId) flush()
    messageId = id
    const kept = piece.slice(0, longestAnswer - said.length)
    if (kept === '') return
    said += kept
    emit({ type: 'delta', text: kept })
  }
  const tellCall = (call: OpenCall) => {
    if (call.isTold) return
    call.isTold = true
    emit({ type: 'step', kind: 'tool_call', name: call.name, text: call.input })
  }
  /** Agents tell of a call before they know all of its arguments, so it becomes a step a moment later, or at its end. */
  const takeCall = (update: ToolCall | ToolCallUpdate) => {
    flush()
    const id = update.toolCallId
    const call = open.get(id) ?? { name: 'tool', input: '', isTold: false }
    if (!call.isTold) {
      if (update.title) call.name = update.title.slice(0, longestName).toWellFormed()
      call.input = textOf(update.rawInput) || call.input
    }
    if (update.status !== 'completed' && update.status !== 'failed') {
      const isNew = !open.has(id)
      if (isNew && open.size >= mostOpenCalls) return
      if (isNew) setTimeout(tellCall, argumentsMs, call).unref()
      open.set(id, call)
      return
    }
    tellCall(call)
    open.delete(id)
    const result = (update.content ?? []).map(textIn).join('\n') || textOf(update.rawOutput)
    const text = update.status === 'failed' ? `Failed. ${result}` : result
    emit({ type: 'step', kind: 'tool_result', name: call.name, text: text.slice(0, longestStep) })
  }
  return {
    take(update) {
      switch (update.sessionUpdate) {
        case 'agent_message_chunk':
          return hear(
            update.content.type === 'text' ? update.content.text : `(${update.content.type})`,
            update.messageId,
          )
        case 'agent_thought_chunk':
          if (said !== '') flush()
          if (update.content.type === 'text')
            thought += update.content.text.slice(0, longestStep - thought.length)
          return
        case 'tool_call':
        case 'tool_call_update':
          return takeCall(update)
        case 'plan':
          flush()
          return step(
            'notice',
            `Plan: ${update.entries.map(({ content, status }) => `${content} (${status})`).join('; ')}`.slice(
              0,
              longestStep,
            ),
          )
      }
    },
    end() {
      flush()
      for (const call of open.values()) tellCall(call)
      return answer || null
    },
  }
}

function textIn(content: ToolCallContent): string {
  if (content.type === 'content')
    return content.content.type === 'text' ? content.content.text : `(${content.content.type})`
  return content.type === 'diff' ? `Changed ${content.path}` : '(terminal)'
}

/** Nothing in `{}` is worth a step. */
const textOf = (value: unknown): string => {
  const text = typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)
  return text === '{}' ? '' : text.slice(0, longestStep)
}
