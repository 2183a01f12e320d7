import type { RunInput } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { promptOf } from '../prompt.ts'
import type { DriverContext } from '../types.ts'
import type { Answer } from './apis/types.ts'
import type { Conversation } from './conversation.ts'
import { type HeardCall, heardIn, kept } from './heard.ts'
import { type Message, type ToolResult, textIn, textPart, userMessage } from './messages.ts'
import { isTooLong, type Speaker } from './speaker.ts'
import { listenInSteps } from './steps.ts'
import { argumentsIn, type Offer, unknownTool } from './tools/offer.ts'
import { refused, type ToolOutput } from './tools/types.ts'
import { compacted, tokensOfAll, transcriptOf } from './window.ts'

/**
 * One turn, in steps that repeat:
 *
 *   hearing     what was fed is added to the conversation and counts as used
 *   asking      the model is asked with the whole conversation. No calls in its answer → the turn ends with its text
 *   calling     each call is done, one after the other, and gets a result, whatever happens
 *
 * The conversation is saved between these steps: after a crash it has every call that was begun, without its result. If the turn is stopped while asking, what the model had said
 * by then is kept; while calling, the calls that are left get a result that says so. If the model fails before it has
 * said anything, what was heard is taken out again, as the next run hears it anew.
 */
export interface Agent {
  context: DriverContext
  conversation: Conversation
  speaker: Speaker
  /** the tools as they are now */
  offer(): Offer
  about: string
  /** whether nothing was heard in this run yet */
  isFirst: boolean
}

const mostCalls = 100
const sameCalls = 3

/** What to say at the end; null: nothing. Rejects when the model does not answer, or when `signal` fires. */
export async function playTurn(
  agent: Agent,
  next: () => readonly RunInput[],
  signal: AbortSignal,
): Promise<string | null> {
  const { conversation, speaker } = agent
  let said = ''
  let repeated = { call: '', count: 0 }
  let unanswered = 0
  for (let count = 0; count < mostCalls; count++) {
    unanswered += hear(agent, next())
    let answer: Answer
    try {
      answer = await ask(agent, signal)
    } catch (error) {
      if (count === 0 && !signal.aborted) forget(conversation, unanswered)
      throw error
    }
    const known = knownIds(conversation.messages)
    const heard = heardIn(answer, id => known.has(id))
    if (heard.text !== '' || heard.calls.length > 0) {
      conversation.messages.push(kept(heard, speaker.api, speaker.model))
      said = heard.text || said
    }
    conversation.save()
    if (heard.calls.length === 0) {
      noteCut(agent, answer, said)
      return said || null
    }
    const results: ToolResult[] = []
    for (const call of heard.calls) {
      const words = `${call.name} ${call.input}`
      repeated = { call: words, count: repeated.call === words ? repeated.count + 1 : 1 }
      results.push(await resultOf(agent, call, repeated.count, signal))
    }
    conversation.messages.push({ role: 'tool', results })
    if (signal.aborted) conversation.save()
    signal.throwIfAborted()
  }
  conversation.save()
  return `I have stopped after ${mostCalls} steps without coming to an end. Write “go on”, and I continue.`
}

/** How many messages were added. */
function hear(agent: Agent, inputs: readonly RunInput[]): number {
  const { context, conversation } = agent
  if (inputs.length > 0) {
    conversation.messages.push(userMessage(promptOf(inputs, context.start, agent.isFirst)))
    agent.isFirst = false
  }
  conversation.save()
  if (inputs.length > 0) context.emit({ type: 'used', inputs: inputs.map(({ id }) => id) })
  return inputs.length > 0 ? 1 : 0
}

function forget(conversation: Conversation, count: number): void {
  for (let left = count; left > 0 && conversation.messages.at(-1)?.role === 'user'; left--)
    conversation.messages.pop()
  conversation.save()
}

async function ask(agent: Agent, signal: AbortSignal): Promise<Answer> {
  const { context, conversation, speaker } = agent
  const { definitions, list } = agent.offer()
  const system = list === '' ? agent.about : `${agent.about}\n${list}`
  const room = () => speaker.room(system, definitions)
  if (tokensOfAll(conversation.messages) > room()) await compact(agent, room(), signal)
  const listener = listenInSteps(context.emit)
  const once = () =>
    speaker.ask({ system, tools: definitions, messages: conversation.messages }, listener, signal)
  try {
    return await once().catch(async (error: unknown) => {
      if (!isTooLong(error)) throw error
      await compact(agent, Math.min(room(), tokensOfAll(conversation.messages)) / 2, signal)
      return once()
    })
  } catch (error) {
    if (signal.aborted) {
      conversation.messages.push({
        role: 'assistant',
        text: `${listener.end()}\n(${signal.reason})`.trim(),
        calls: [],
      })
      conversation.save()
    }
    throw error
  } finally {
    listener.end()
  }
}

const summariser =
  'You write summaries of conversations between people and an assistant (“You”). Keep what is needed to go on: what people want and have decided, names, numbers, paths, what was done and what is still to do. Write at most 400 words and nothing else.'

async function compact(
  { context, conversation, speaker }: Agent,
  room: number,
  signal: AbortSignal,
): Promise<void> {
  const silent = { text: () => {}, thinking: () => {} }
  conversation.messages = await compacted(conversation.messages, {
    room,
    notice: text => context.emit({ type: 'step', kind: 'notice', text }),
    async summarise(older) {
      const messages = [userMessage(transcriptOf(older, speaker.context / 2))]
      const answer = await speaker.ask({ system: summariser, tools: [], messages }, silent, signal)
      return heardIn(answer, () => false).text
    },
  })
  signal.throwIfAborted()
}

async function resultOf(
  agent: Agent,
  call: HeardCall,
  count: number,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { emit } = agent.context
  const { id, name, input } = call
  emit({ type: 'step', kind: 'tool_call', name, text: input })
  const { parts, isError } = await outputOf(agent.offer(), call, signal)
  const hint =
    count >= sameCalls
      ? [textPart(`You have made this same call ${count} times in a row. Do something else, or answer.`)]
      : []
  const result = { id, name, parts: [...parts, ...hint], isError }
  emit({ type: 'step', kind: 'tool_result', name, text: textIn(result.parts) })
  return result
}

async function outputOf(
  { tools }: Offer,
  { name, input, problem }: HeardCall,
  signal: AbortSignal,
): Promise<ToolOutput> {
  if (signal.aborted) return refused(`Not run: ${signal.reason}`)
  const tool = tools.get(name)
  if (!tool) return unknownTool(name, tools.keys())
  if (problem !== undefined) return refused(problem)
  try {
    return await tool.call(argumentsIn(input) ?? {}, signal)
  } catch (error) {
    return refused(`The tool failed: ${reasonOf(error)}`)
  }
}

function noteCut({ context }: Agent, { cut }: Answer, said: string): void {
  if (cut === undefined) return
  if (said === '') throw new Error(`The model ended without an answer (${cut}).`)
  context.emit({ type: 'step', kind: 'notice', text: `The model’s answer was cut (${cut}).` })
}

const knownIds = (messages: readonly Message[]): ReadonlySet<string> =>
  new Set(
    messages.flatMap(message => (message.role === 'assistant' ? message.calls.map(({ id }) => id) : [])),
  )
