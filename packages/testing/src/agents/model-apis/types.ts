export type ApiName = 'messages' | 'responses' | 'completions' | 'generate'

/** What the model says; `input` as a text is sent as it stands, broken or not. */
export interface ModelReply {
  thinking?: string
  text?: string
  calls?: readonly { name: string; input: object | string }[]
  /** waited for when half of the answer is sent */
  hold?: Promise<unknown>
}

/** An answer with an error, half an answer, one that is no JSON, or none at all. */
export type Failure =
  | { status: number; message?: string; retryAfter?: number }
  | 'cut'
  | 'garbage'
  | 'silence'

/** One message of a conversation, in whichever of the four ways it was written. */
export interface Said {
  role: 'user' | 'assistant' | 'tool'
  text: string
  images: number
  calls: readonly { id: string; name: string; input: string }[]
  /** the ids of the calls that it has results of */
  results: readonly string[]
}

export interface ReadRequest {
  model: string
  stream: boolean
  system: string
  /** the names of the tools that the model may call */
  tools: readonly string[]
  said: readonly Said[]
}

export interface ApiFormat {
  name: ApiName
  path: RegExp
  read(body: Readonly<Record<string, unknown>>, path: string): ReadRequest
  /** server-sent events */
  events(model: string, reply: ModelReply): readonly string[]
  /** the answer to a request that does not ask for a stream */
  whole(model: string, reply: ModelReply): object
  error(status: number, message: string): object
}

export type Fields = Readonly<Record<string, unknown>>

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {}
export const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : [])
export const textOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : listOf(value)
        .map(({ text }) => (typeof text === 'string' ? text : ''))
        .join('')

let counter = 0
export const freshId = (prefix: string): string => `${prefix}${String(++counter).padStart(6, '0')}`

/** In pieces, as models answer. */
export const piecesOf = (text: string): readonly string[] => text.match(/\S+\s*|\s+/g) ?? []

export const inputText = (input: object | string): string =>
  typeof input === 'string' ? input : JSON.stringify(input)

export const event = (data: object, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

export const usage = { in: 11, out: 7 }
