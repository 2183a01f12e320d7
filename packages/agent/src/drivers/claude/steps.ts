import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk'
import type { RunEvent } from '@hatchway/protocol'

type Step = Extract<RunEvent, { type: 'step' }>

/** What Claude does, for those who look on. */
export function stepsOf(message: SDKMessage, toolNames: Map<string, string>): readonly Step[] {
  if (message.type === 'assistant') {
    return message.message.content.flatMap((block): Step[] => {
      if (block.type === 'text') return step('text', block.text)
      if (block.type === 'thinking') return step('thinking', block.thinking)
      if (block.type !== 'tool_use') return []
      toolNames.set(block.id, block.name)
      return [{ type: 'step', kind: 'tool_call', name: block.name, text: JSON.stringify(block.input) }]
    })
  }
  if (message.type === 'user' && typeof message.message.content !== 'string') {
    return message.message.content.flatMap((block): Step[] => {
      if (block.type !== 'tool_result') return []
      const name = toolNames.get(block.tool_use_id)
      toolNames.delete(block.tool_use_id)
      const text = typeof block.content === 'string' ? block.content : textOf(block.content ?? [])
      return [{ type: 'step', kind: 'tool_result', text, ...(name === undefined ? {} : { name }) }]
    })
  }
  if (message.type === 'system' && message.subtype === 'api_retry') {
    return step('notice', `The model did not answer (attempt ${message.attempt} of ${message.max_retries}).`)
  }
  return []
}

/** The next words that Claude itself says; what its subagents say is not for the chat. */
export const wordsOf = (message: SDKMessage): string =>
  message.type === 'stream_event' &&
  message.parent_tool_use_id === null &&
  message.event.type === 'content_block_delta' &&
  message.event.delta.type === 'text_delta'
    ? message.event.delta.text
    : ''

const step = (kind: Step['kind'], text: string): Step[] => (text === '' ? [] : [{ type: 'step', kind, text }])

const textOf = (blocks: readonly { type: string; text?: unknown }[]): string =>
  blocks.map(({ type, text }) => (typeof text === 'string' ? text : `(${type})`)).join('\n')
