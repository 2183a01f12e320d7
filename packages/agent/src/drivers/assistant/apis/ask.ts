import type { IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { reasonOf } from '@hatchway/spool'
import { z } from 'zod'
import { type Answer, type Listener, type ModelApi, ModelError, type Question } from './types.ts'

/**
 * One question to the model and its answer, over the host's socket: one request to a connection. Nothing is tried again
 * here, as the host does that.
 */
export interface Way {
  socket: string | undefined
  signal: AbortSignal
}

/** A model on a slow machine may read for minutes before it says a word. */
const silenceMs = 600_000
const largest = 16_777_216

export async function askModel(
  api: ModelApi,
  question: Question,
  listener: Listener,
  { socket, signal }: Way,
): Promise<Answer> {
  if (!socket) throw new ModelError('There is no way to a model in this run: the host has opened none.')
  try {
    const response = await post(socket, api, question, signal)
    if (response.statusCode !== 200) throw await refusal(response, question.model)
    const reader = api.read(listener)
    for await (const event of eventsIn(response)) reader.take(event)
    const answer = reader.answer()
    if (!answer) throw new ModelError('The model’s answer broke off.')
    return answer
  } catch (error) {
    if (error instanceof ModelError || signal.aborted) throw error
    if (error instanceof SyntaxError || error instanceof z.ZodError)
      throw new ModelError('The model’s API answered in a way that cannot be read.')
    throw new ModelError(`The connection to the model broke: ${reasonOf(error)}`)
  }
}

async function post(
  socketPath: string,
  api: ModelApi,
  question: Question,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  // Loaded here and not above: in the one file that sandboxes run, every driver would wait for it, the concierge too.
  const { request } = await import('node:http')
  const body = Buffer.from(JSON.stringify(api.body(question)))
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        socketPath,
        path: api.path(question.model),
        method: 'POST',
        agent: false,
        signal,
        headers: {
          host: 'localhost',
          'content-type': 'application/json',
          'content-length': body.length,
          accept: 'text/event-stream, application/json',
          'user-agent': 'hatchway-assistant',
          ...api.headers,
        },
      },
      resolve,
    )
    sent.setTimeout(silenceMs, () =>
      sent.destroy(new ModelError(`The model said nothing for ${silenceMs / 60_000} minutes.`)),
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Server-sent events, as JSON. */
async function* eventsIn(response: IncomingMessage): AsyncGenerator<unknown> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let size = 0
  for await (const chunk of response) {
    size += chunk.length
    if (size > largest) throw new ModelError('The model’s answer is too long.')
    const lines = (rest + decoder.write(chunk)).split(/\r?\n/)
    rest = lines.pop() ?? ''
    // Every one of these APIs puts an event's data on one line.
    for (const line of lines) {
      const data = line.startsWith('data:') ? line.slice(5).trim() : ''
      if (data !== '' && data !== '[DONE]') yield JSON.parse(data)
    }
  }
}

const errorSchema = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ message: z.string() }).transform(({ message }) => message),
])
const longestReason = 1000

async function refusal(response: IncomingMessage, model: string): Promise<ModelError> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) if (text.length < 65_536) text += chunk
  const status = response.statusCode
  const said = messageIn(text).trim().slice(0, longestReason)
  return new ModelError(
    `The API of the model ${model} answered ${status}${said === '' ? '' : `: ${said}`}`,
    status,
  )
}

function messageIn(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    // Google's answers to a stream are a list.
    return errorSchema.safeParse(Array.isArray(value) ? value[0] : value).data ?? text
  } catch (error) {
    if (error instanceof SyntaxError) return text
    throw error
  }
}
