/**
 * What the body of a request to a model API may contain. A provider does more than answer: it searches the web, fetches
 * addresses, runs code, calls other servers and keeps conversations. For a sandbox without a network each of these is a
 * way out and a way in that no gate sees, so only what the model itself needs is let through: named fields, tools that
 * the agent runs itself, and content that is in the request.
 *
 * The lists are those of the providers' own client libraries. A field or a kind of tool that is not in them is refused.
 */
type Fields = Readonly<Record<string, unknown>>

/** Why it may not be sent, in words that begin after “The host does not forward ”; undefined: it may. */
type Problem = string | undefined

/** The rules for the body of one endpoint. */
type ContentRules = (body: Fields) => Problem

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Some APIs take a single thing for a list of one. */
const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : isFields(value) ? [value] : []
const setOf = (words: string): ReadonlySet<string> => new Set(words.trim().split(/\s+/))
const shown = (name: string) => (/^[\w.:-]{1,60}$/.test(name) ? `\`${name}\`` : 'an unknown name')

const first = (problems: Iterable<Problem>): Problem => {
  for (const problem of problems) if (problem !== undefined) return problem
  return undefined
}
const unknownField = (body: Fields, known: ReadonlySet<string>): Problem => {
  const name = Object.keys(body).find(key => !known.has(key) && isSet(body[key]))
  return name === undefined ? undefined : `the field ${shown(name)}`
}
/** Clients write fields that they do not use as null or empty. */
const isSet = (value: unknown) =>
  value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)

const toolProblem = (tools: unknown, isOwn: (tool: Fields) => boolean): Problem =>
  first(
    listOf(tools).map(tool =>
      isFields(tool) && isOwn(tool)
        ? undefined
        : `the tool ${shown(isFields(tool) ? String(tool.type ?? Object.keys(tool)[0]) : '')}: the provider would run it, outside the sandbox. Turn it off in the agent; lend it an MCP server instead`,
    ),
  )
const fetched = (what: string): string =>
  `${what}: the provider would fetch it. Put the content itself into the request`
const isInline = (value: unknown): boolean => typeof value === 'string' && /^data:/i.test(value)

/** https://platform.claude.com/docs/en/api/messages */
const messagesFields =
  setOf(`max_tokens messages model cache_control compaction context_management diagnostics
  fallback_credit_token fallbacks inference_geo metadata output_config output_format service_tier speed stop_sequences stream
  system temperature thinking tool_choice tools top_k top_p betas`)
/** run by the agent, except for the last two, which reach nothing but the request itself and another model */
const ownTools =
  /^(bash|text_editor|computer|memory|tool_search_tool_regex|tool_search_tool_bm25|advisor)_\d{8}$/
const ownSources = setOf('base64 text content')

const messages: ContentRules = body =>
  unknownField(body, messagesFields) ??
  toolProblem(
    body.tools,
    ({ type }) =>
      type === undefined || type === 'custom' || (typeof type === 'string' && ownTools.test(type)),
  ) ??
  blocksProblem([...listOf(body.messages), ...listOf(body.system)])

/** Of messages, their blocks, and blocks within these. */
const blocksProblem = (blocks: readonly unknown[]): Problem =>
  first(
    blocks.map(block => {
      if (!isFields(block)) return undefined
      if (block.type === 'container_upload') return 'files that are kept by the provider'
      const { source } = block
      if (isFields(source) && !(typeof source.type === 'string' && ownSources.has(source.type)))
        return fetched('content by its address or its id')
      return blocksProblem([...listOf(block.content), ...(isFields(source) ? listOf(source.content) : [])])
    }),
  )

/** https://platform.openai.com/docs/api-reference/chat/create, and what Ollama, llama.cpp, vLLM and OpenRouter add to it */
const completionsFields =
  setOf(`model messages stream stream_options temperature top_p top_k min_p top_a n stop max_tokens
  max_completion_tokens presence_penalty frequency_penalty repetition_penalty repeat_penalty logit_bias logprobs top_logprobs
  user seed tools tool_choice parallel_tool_calls response_format reasoning reasoning_effort verbosity modalities audio
  prediction service_tier store metadata prompt_cache_key prompt_cache_retention safety_identifier functions function_call
  think thinking enable_thinking chat_template_kwargs cache_prompt options keep_alive usage provider transforms`)
const completionsTools = setOf('function custom')

/** OpenRouter's way of adding a web search to any model; models of OpenAI, Perplexity and Groq that search by themselves. */
const searching = /:online\b|(^|\/)(sonar|compound)(-|:|$)|-search-(preview|api)|-deep-research/i
const searchProblem = ({ model }: Fields): Problem =>
  typeof model === 'string' && searching.test(model) ? 'models that search the web' : undefined

const completions: ContentRules = body =>
  unknownField(body, completionsFields) ??
  searchProblem(body) ??
  toolProblem(body.tools, ({ type }) => typeof type === 'string' && completionsTools.has(type)) ??
  partsProblem(listOf(body.messages).flatMap(message => (isFields(message) ? listOf(message.content) : [])))

/** https://platform.openai.com/docs/api-reference/responses/create */
const responsesFields =
  setOf(`model input instructions stream stream_options temperature top_p max_output_tokens max_tool_calls
  tools tool_choice parallel_tool_calls reasoning text include store metadata truncation user service_tier prompt_cache_key
  prompt_cache_retention safety_identifier top_logprobs client_metadata context_management`)
const responsesTools = setOf('function custom local_shell apply_patch tool_search')

const isResponsesTool = ({ type, tools }: Fields): boolean =>
  type === 'namespace'
    ? listOf(tools).every(tool => isFields(tool) && isResponsesTool(tool))
    : typeof type === 'string' && responsesTools.has(type)

const responses: ContentRules = body => {
  const items = listOf(body.input).filter(isFields)
  return (
    unknownField(body, responsesFields) ??
    searchProblem(body) ??
    toolProblem(body.tools, isResponsesTool) ??
    (items.some(({ type }) => type === 'item_reference')
      ? 'items that are kept by the provider'
      : undefined) ??
    partsProblem(items.flatMap(({ content, output }) => [...listOf(content), ...listOf(output)]))
  )
}

/** Parts of what is said, in either of OpenAI's two ways. */
const partsProblem = (parts: readonly unknown[]): Problem =>
  first(parts.map(part => (isFields(part) ? partProblem(part) : undefined)))

const addressFields = ['image_url', 'video_url', 'audio_url', 'file_url', 'url'] as const

function partProblem(part: Fields): Problem {
  const file = isFields(part.file) ? part.file : {}
  if (isSet(part.file_id) || isSet(file.file_id)) return 'files that are kept by the provider'
  for (const field of addressFields) {
    const value = part[field]
    const address = isFields(value) ? value.url : value
    if (isSet(address) && !isInline(address)) return fetched('content by its address')
  }
  for (const data of [part.file_data, file.file_data])
    if (typeof data === 'string' && /^[a-z][a-z0-9+.-]*:/i.test(data) && !isInline(data))
      return fetched('content by its address')
  return holdsAddress(part) ? fetched('content by its address') : undefined
}

/** What is said may speak of addresses. One in any other field, whatever its name, is there to be fetched. */
const wordFields = setOf('text refusal thinking reasoning summary arguments title annotations citations')
function holdsAddress(value: unknown): boolean {
  if (typeof value === 'string') return /^\s*[a-z][a-z0-9+.-]*:\/\//i.test(value)
  if (Array.isArray(value)) return value.some(holdsAddress)
  return isFields(value) && Object.keys(value).some(key => !wordFields.has(key) && holdsAddress(value[key]))
}

/** https://ai.google.dev/api/generate-content */
const generateFields =
  setOf(`contents tools toolConfig tool_config systemInstruction system_instruction generationConfig
  generation_config safetySettings safety_settings model`)
const generateTools = setOf('functionDeclarations function_declarations')

const generate: ContentRules = body =>
  unknownField(body, generateFields) ??
  toolProblem(body.tools, tool =>
    Object.keys(tool).every(key => generateTools.has(key) || !isSet(tool[key])),
  ) ??
  googlePartsProblem([...listOf(body.contents), ...[body.systemInstruction, body.system_instruction]])

const googlePartsProblem = (holders: readonly unknown[]): Problem =>
  first(
    holders.filter(isFields).flatMap(({ parts }) =>
      listOf(parts).map(part => {
        if (!isFields(part)) return undefined
        if (isSet(part.fileData) || isSet(part.file_data)) return fetched('content by its address')
        return googlePartsProblem([part.functionResponse, part.function_response])
      }),
    ),
  )

const contentRules = { messages, completions, responses, generate }

export type RuledContent = keyof typeof contentRules

/** Streams of this API say what they cost only where it is asked for. */
const withUsage = (body: Fields): Fields =>
  body.stream === true
    ? {
        ...body,
        stream_options: {
          ...(isFields(body.stream_options) ? body.stream_options : {}),
          include_usage: true,
        },
      }
    : body

/** The body that we send instead of the sandbox's: what was checked, and nothing that another parser might see in it. */
export function contentFor(
  bytes: Uint8Array,
  kind: RuledContent,
): { bytes: Buffer; model: string } | { problem: string } {
  try {
    const body: unknown = JSON.parse(
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
    )
    if (!isFields(body)) return { problem: 'The body has to be a JSON object.' }
    const problem = contentRules[kind](body)
    if (problem !== undefined) return { problem: `The host does not forward ${problem}.` }
    const model = typeof body.model === 'string' ? body.model : ''
    return { bytes: Buffer.from(JSON.stringify(kind === 'completions' ? withUsage(body) : body)), model }
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: 'The body is not JSON.' }
    if (error instanceof RangeError) return { problem: 'The body is nested too deeply.' }
    throw error
  }
}
