import type { Message, ToolCall } from '../messages.ts'

export interface ToolDefinition {
  name: string
  description: string
  schema: Readonly<Record<string, unknown>>
}

/** What the model is asked: always the whole conversation, as the APIs keep nothing. */
export interface Question {
  model: string
  system: string
  tools: readonly ToolDefinition[]
  messages: readonly Message[]
  /** the longest answer, for the API that wants to be told */
  maxTokens: number
}

export interface Answer {
  text: string
  /** `input` as the model wrote it, which may be no JSON; `id` may be empty */
  calls: readonly ToolCall[]
  /** to be given back as it is */
  own?: readonly Record<string, unknown>[]
  /** tokens of the question, where the API says so */
  inputTokens?: number
  /** why it ended, where that is not as usual: the longest answer was reached, or a filter stopped it */
  cut?: string
}

/** Hears the answer as it comes. */
export interface Listener {
  text(piece: string): void
  thinking(piece: string): void
}

export interface Reader {
  take(event: unknown): void
  /** undefined: the answer broke off */
  answer(): Answer | undefined
}

export interface ModelApi {
  path(model: string): string
  headers: Readonly<Record<string, string>>
  body(question: Question): object
  read(listener: Listener): Reader
}

/** The model did not answer, in words for the people in the chat. */
export class ModelError extends Error {
  readonly status: number | undefined
  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** What clients send where the host puts the key. */
export const placeholder = 'kept-by-the-host'

/** An object, whatever the model wrote. */
export function objectIn(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
