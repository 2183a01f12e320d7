import type { RunStart } from '@hatchway/protocol'
import { askModel } from './apis/ask.ts'
import { type ApiName, apis } from './apis/index.ts'
import { type Answer, type Listener, ModelError, type Question, type ToolDefinition } from './apis/types.ts'
import { hasImages, type Message, textPart, withImages } from './messages.ts'
import { tokensIn, tokensOfAll, tokensOfTools } from './window.ts'

/** Asks the run's model, in a way it can take: some take no images, some no tools. */
export interface Speaker {
  readonly api: ApiName
  readonly model: string
  /** how many tokens it can hold */
  readonly context: number
  ask(question: Asked, listener: Listener, signal: AbortSignal): Promise<Answer>
  /** how many tokens the messages may have, by our estimate */
  room(system: string, tools: readonly ToolDefinition[]): number
}

type Asked = Pick<Question, 'system' | 'tools' | 'messages'>

const longestAnswer = 8192
const leastRoom = 500

export function createSpeaker(
  start: RunStart & { model: string },
  socket: string | undefined,
  notice: (text: string) => void,
): Speaker {
  const api = start.model_api ?? 'messages'
  const context = start.model_context ?? (api === 'completions' ? 32_000 : 128_000)
  const { model } = start
  const maxTokens = Math.min(longestAnswer, Math.floor(context / 4))
  let takesImages = true
  let takesTools = true
  /** how many tokens the API counts for one of ours */
  let factor = 1

  const questionFor = ({ system, tools, messages }: Asked): Question => {
    const shown = takesImages
      ? messages
      : withImages(messages, () => textPart('(an image, which this model cannot see)'))
    return takesTools
      ? { model, maxTokens, system, tools, messages: joined(shown) }
      : {
          model,
          maxTokens,
          system: `${system}\n${inWords(tools)}`,
          tools: [],
          messages: joined(callsAsText(shown)),
        }
  }
  /** Whether it is worth asking again, in another way. */
  const adapts = (error: unknown, { tools, messages }: Asked): boolean => {
    if (!(error instanceof ModelError) || error.status === undefined) return false
    if (takesTools && tools.length > 0 && noTools.test(error.message)) {
      takesTools = false
      notice('This model takes no tools from its server; they are told in words instead.')
      return true
    }
    if (takesImages && hasImages(messages) && noImages.test(error.message)) {
      takesImages = false
      notice('This model cannot see images; they are left out.')
      return true
    }
    return false
  }

  const ask: Speaker['ask'] = async (asked, listener, signal) => {
    const question = questionFor(asked)
    try {
      const answer = await askModel(apis[api], question, listener, { socket, signal })
      const estimate =
        tokensIn(question.system) + tokensOfTools(question.tools) + tokensOfAll(question.messages)
      if (answer.inputTokens) factor = Math.min(3, Math.max(1, answer.inputTokens / estimate))
      return answer
    } catch (error) {
      if (!adapts(error, asked)) throw error
      return ask(asked, listener, signal)
    }
  }
  return {
    api,
    model,
    context,
    ask,
    room: (system, tools) =>
      Math.max(leastRoom, (context - maxTokens) / factor - tokensIn(system) - tokensOfTools(tools)),
  }
}

const noTools = /(?:tool|function)[\s\S]*(?:not|n't|un)[- ]?support|support[\s\S]*(?:tool|function)/i
const noImages = /image|vision|multimodal|modalit|media|inline_?data/i
const tooLong = /context|too long|too large|too many tokens|exceed|maximum.{0,40}token|prompt is/i

/** Whether the conversation was longer than the model can hold. */
export const isTooLong = (error: unknown): boolean =>
  error instanceof ModelError &&
  error.status !== undefined &&
  [400, 413, 422, 500].includes(error.status) &&
  tooLong.test(error.message)

/** Some models insist on hearing both sides in turn. */
function joined(messages: readonly Message[]): readonly Message[] {
  const list: Message[] = []
  for (const message of messages) {
    const last = list.at(-1)
    if (message.role === 'user' && last?.role === 'user')
      list[list.length - 1] = { role: 'user', parts: [...last.parts, ...message.parts] }
    else list.push(message)
  }
  return list
}

/** Tools for a model whose server knows of none. */
const inWords = (tools: readonly ToolDefinition[]): string =>
  tools.length === 0
    ? ''
    : [
        'To call a tool, write exactly <tool_call>{"name": "…", "arguments": {…}}</tool_call> and end your answer. Its result comes as <tool_result>. Your tools:',
        ...tools.map(
          ({ name, description, schema }) => `- ${name}: ${description} Arguments: ${JSON.stringify(schema)}`,
        ),
      ].join('\n')

const callsAsText = (messages: readonly Message[]): readonly Message[] =>
  messages.map(message => {
    if (message.role === 'user') return message
    if (message.role === 'tool')
      return {
        role: 'user',
        parts: message.results.flatMap(({ name, parts }) => [
          textPart(`<tool_result name="${name}">`),
          ...parts,
          textPart('</tool_result>'),
        ]),
      }
    const calls = message.calls.map(
      ({ name, input }) => `<tool_call>{"name": "${name}", "arguments": ${input}}</tool_call>`,
    )
    return {
      role: 'assistant',
      text: [message.text, ...calls].filter(text => text !== '').join('\n'),
      calls: [],
    }
  })
