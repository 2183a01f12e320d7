import type { Answer } from './apis/types.ts'
import type { AssistantMessage, ToolCall } from './messages.ts'
import { argumentsIn } from './tools/offer.ts'

/** The model's answer in a form that can be kept and sent to any API, whatever the model wrote. */
export interface HeardAnswer {
  text: string
  calls: readonly HeardCall[]
  own: Answer['own']
}

export interface HeardCall extends ToolCall {
  /** why it cannot be done as it was written */
  problem?: string
}

/** How models write a call that their server did not understand as one. */
const textCall = /<tool_call>\s*([\s\S]*?)\s*(?:<\/tool_call>|$)/g
/** How models think whose server does not tell it apart. */
const thought = /^\s*<think>[\s\S]*?(?:<\/think>|$)\s*/

export function heardIn(answer: Answer, isKnownId: (id: string) => boolean): HeardAnswer {
  const spoken = answer.text.replace(thought, '').trim()
  const isNative = answer.calls.length > 0
  const written = isNative
    ? answer.calls
    : [...spoken.matchAll(textCall)].map(([, text = '']) => writtenCall(text))
  const ids = new Set<string>()
  const calls = written.map((call): HeardCall => {
    // Some servers count from zero in each answer, or leave ids out.
    const isUsable =
      /^[\w-]{1,64}$/.test(call.id) && !ids.has(call.id) && (answer.own !== undefined || !isKnownId(call.id))
    const id = isUsable ? call.id : freshId()
    ids.add(id)
    const args = argumentsIn(call.input)
    return {
      id,
      name: call.name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unknown',
      input: JSON.stringify(args ?? {}),
      ...(args ? {} : { problem: brokenArguments(call.input) }),
    }
  })
  return {
    text: isNative ? spoken : spoken.replaceAll(textCall, '').trim(),
    calls,
    own: answer.own,
  }
}

const brokenArguments = (text: string): string =>
  `Not called: the arguments are not a JSON object: ${text.slice(0, 300).toWellFormed()}. Call it again with valid JSON.`

function writtenCall(text: string): ToolCall {
  const { name, arguments: given, parameters } = argumentsIn(text) ?? {}
  const input = given ?? parameters ?? {}
  return typeof name === 'string'
    ? { id: '', name, input: typeof input === 'string' ? input : JSON.stringify(input) }
    : { id: '', name: 'unknown', input: text }
}

let counter = 0
/** Nine letters and digits: one of the vendors takes nothing else. */
const freshId = (): string =>
  `c${(Date.now() % 36 ** 4).toString(36).padStart(4, '0')}${(++counter % 36 ** 4).toString(36).padStart(4, '0')}`

export const kept = ({ text, calls, own }: HeardAnswer, api: string, model: string): AssistantMessage => ({
  role: 'assistant',
  text,
  calls: calls.map(({ id, name, input }) => ({ id, name, input })),
  ...(own === undefined ? {} : { own: { api, model, items: own.map(item => ({ ...item })) } }),
})
