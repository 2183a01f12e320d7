import { z } from 'zod'

/** What one request to the model cost. */
export interface ModelUsage {
  model: string
  /** all of it, what came from the provider's cache included */
  inputTokens: number
  outputTokens: number
  /** of the input, what the provider had in its cache */
  cachedTokens: number
}

const count = z.number().int().nonnegative().nullish()
/** Anthropic's, OpenAI's two, in one: no name means different things in two of them. */
const usageSchema = z.object({
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  output_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count }).nullish(),
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).nullish(),
})
const googleSchema = z.object({
  promptTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
  toolUsePromptTokenCount: count,
  cachedContentTokenCount: count,
})
const partSchema = z.object({ model: z.string().nullish(), usage: usageSchema.nullish() })
const documentSchema = partSchema.extend({
  /** in a stream of Anthropic's */
  message: partSchema.nullish(),
  /** in a stream of OpenAI's Responses */
  response: partSchema.nullish(),
  modelVersion: z.string().nullish(),
  usageMetadata: googleSchema.nullish(),
})
type Document = z.infer<typeof documentSchema>
type Tokens = Omit<ModelUsage, 'model'>

const sum = (...counts: (number | null | undefined)[]): number =>
  counts.reduce<number>((all, one) => all + (one ?? 0), 0)

const tokensOf = (usage: z.infer<typeof usageSchema>): Tokens => ({
  // Anthropic's input is without what was cached, OpenAI's with it.
  inputTokens: sum(
    ...[usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens],
    usage.prompt_tokens,
  ),
  outputTokens: sum(usage.output_tokens, usage.completion_tokens),
  cachedTokens: sum(
    ...[usage.cache_read_input_tokens, usage.input_tokens_details?.cached_tokens],
    usage.prompt_tokens_details?.cached_tokens,
  ),
})

const googleTokensOf = (usage: z.infer<typeof googleSchema>): Tokens => ({
  inputTokens: sum(usage.promptTokenCount, usage.toolUsePromptTokenCount),
  outputTokens: sum(usage.candidatesTokenCount, usage.thoughtsTokenCount),
  cachedTokens: sum(usage.cachedContentTokenCount),
})

/** Reads along with a response. Whatever it does not understand costs nothing, and never disturbs the response. */
export interface UsageReader {
  push(chunk: Buffer): void
  /** whether the rest of the response need not be waited for to know what was paid for */
  mayStop(): boolean
  result(): ModelUsage
}

const mostBytes = 8 * 1_048_576
/** A name is a column of the usage table, and some gateways repeat whatever the sandbox has sent as one. */
export const modelName = (given: string): string => (/^[\w.:@/ -]{1,200}$/.test(given) ? given : '')

export function readUsage(contentType: string): UsageReader {
  const found: ModelUsage = { model: '', inputTokens: 0, outputTokens: 0, cachedTokens: 0 }
  // Later events of a stream count from the beginning, so the largest is the sum.
  const add = (tokens: Tokens) => {
    for (const name of ['inputTokens', 'outputTokens', 'cachedTokens'] as const)
      found[name] = Math.max(found[name], tokens[name])
  }
  const take = (document: Document) => {
    for (const part of [document, document.message, document.response]) {
      if (part?.model) found.model = modelName(part.model) || found.model
      if (part?.usage) add(tokensOf(part.usage))
    }
    if (document.modelVersion) found.model = modelName(document.modelVersion) || found.model
    if (document.usageMetadata) add(googleTokensOf(document.usageMetadata))
  }
  return contentType.includes('text/event-stream') ? fromEvents(take, found) : fromDocument(take, found)
}

type Take = (document: Document) => void

/** what an event adds around a piece of text, and how many bytes of text make a token, both roughly */
const envelopeBytes = 80
export const bytesPerToken = 4

function fromEvents(take: Take, found: ModelUsage): UsageReader {
  let pieces: Buffer[] = []
  let held = 0
  let contentBytes = 0
  let isBegun = false
  let isEnded = false
  const line = (text: string) => {
    if (!text.startsWith('data:')) return
    if (/"delta"|"content_block_delta"/.test(text)) contentBytes += Math.max(1, text.length - envelopeBytes)
    // Few carry usage; the rest is not worth parsing.
    if (!/"usage(?:Metadata)?" ?: ?\{/.test(text)) return
    const event = documentSchema.safeParse(parsed(text.slice(5)))
    if (!event.success) return
    take(event.data)
    if (event.data.message?.usage) isBegun = true
    else isEnded = true
  }
  const keep = (piece: Buffer) => {
    held += piece.length
    if (held <= mostBytes) pieces.push(piece)
  }
  const endLine = () => {
    if (held <= mostBytes) line(Buffer.concat(pieces).toString('utf8').trim())
    pieces = []
    held = 0
  }
  return {
    push(chunk) {
      let begin = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, begin)) {
        keep(chunk.subarray(begin, end))
        endLine()
        begin = end + 1
      }
      keep(chunk.subarray(begin))
    },
    mayStop: () => isBegun,
    result() {
      endLine()
      // Output is told at the end of a stream. Of one that was broken off we count what we have seen of it.
      const seen = isEnded ? 0 : Math.ceil(contentBytes / bytesPerToken)
      return { ...found, outputTokens: Math.max(found.outputTokens, seen) }
    },
  }
}

function fromDocument(take: Take, found: ModelUsage): UsageReader {
  const chunks: Buffer[] = []
  let size = 0
  let end: Buffer = Buffer.alloc(0)
  const takeAll = (text: string) => {
    const document = parsed(text)
    // Google's streams are a list where events were not asked for.
    for (const one of Array.isArray(document) ? document : [document]) {
      const part = documentSchema.safeParse(one)
      if (part.success) take(part.data)
    }
  }
  return {
    push(chunk) {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
      end = Buffer.concat([end, chunk.subarray(-endBytes)]).subarray(-endBytes)
    },
    mayStop: () => false,
    result() {
      if (size <= mostBytes) {
        takeAll(Buffer.concat(chunks).toString())
        return found
      }
      const text = `${chunks[0]?.toString('utf8', 0, endBytes) ?? ''}${end}`
      for (const [part] of text.matchAll(costPart)) takeAll(`{${part}}`)
      return found.outputTokens > 0 ? found : { ...found, outputTokens: Math.ceil(size / bytesPerToken) }
    },
  }
}

/** of an answer that is too long to be kept: all APIs say in its first or its last bytes what it cost */
const endBytes = 16_384
const costPart = /"model(Version)?"\s*:\s*"[^"\\]*"|"usage(Metadata)?"\s*:\s*\{([^{}]|\{[^{}]*\})*\}/g

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
