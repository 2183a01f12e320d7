import type { IncomingHttpHeaders } from 'node:http'
import type { ChosenModel } from '../../config/model.ts'
import { type ModelApi, modelApis } from '../../config/providers.ts'
import type { RuledContent } from './content.ts'

/**
 * What may go to the model API and what may come back, as pure rules. Nothing is copied from a sandbox's request that is
 * not named here, and each part has to have exactly the form that the API's own clients give it.
 */
export interface ModelRequest {
  method: 'GET' | 'POST'
  /** with its query, rebuilt from parts that were checked one by one */
  path: string
  headers: Record<string, string>
  /** the rules for its body; undefined: it has none */
  content: RuledContent | undefined
}

export interface Refusal {
  status: number
  type: string
  message: string
}

/**
 * What agents call in the course of a turn: Claude's, Codex and others with OpenAI's paths, Gemini's. Each run may call those
 * of the APIs that its provider speaks. Whatever keeps something at the provider or does it later (files, batches, skills)
 * is left out.
 */
const name = '[A-Za-z0-9][A-Za-z0-9._@-]{0,127}'
const endpoints: readonly Endpoint[] = [
  { method: 'POST', path: /^\/v1\/messages(\/count_tokens)?$/, apis: ['messages'], content: 'messages' },
  { method: 'POST', path: /^\/v1\/responses$/, apis: ['responses'], content: 'responses' },
  { method: 'POST', path: /^\/v1\/chat\/completions$/, apis: ['completions'], content: 'completions' },
  {
    method: 'GET',
    path: new RegExp(`^/v1/models(/${name})?$`),
    apis: ['messages', 'responses', 'completions'],
  },
  { method: 'GET', path: new RegExp(`^/v1beta/models(/${name})?$`), apis: ['generate'] },
  {
    method: 'POST',
    path: new RegExp(`^/v1(beta)?/models/${name}:(generateContent|streamGenerateContent|countTokens)$`),
    apis: ['generate'],
    content: 'generate',
  },
]

interface Endpoint {
  method: 'GET' | 'POST'
  path: RegExp
  /** any of these includes it */
  apis: readonly ModelApi[]
  content?: RuledContent
}

const paths: Record<ModelApi, string> = {
  messages: '/v1/messages, /v1/messages/count_tokens',
  responses: '/v1/responses',
  completions: '/v1/chat/completions',
  generate: '/v1beta/models/…:generateContent and :streamGenerateContent',
}

/** How the API of a run is asked: left out, by any API, with the key in the header that the sandbox's placeholder has. */
export type Manner = Pick<ChosenModel, 'apis' | 'keyHeader'>
const anyManner: Manner = { apis: modelApis, keyHeader: undefined }

/** Another `alt` than these has Google answer in a form in which nobody reads what it cost. */
const parameter = /^((beta|limit|after_id|before_id)=[A-Za-z0-9._:-]{1,128}|alt=(sse|json))$/

const jsonType = 'application/json'
const printable = /^[\x20-\x7e]{1,512}$/
const stainless = /^x-stainless-[a-z-]{1,40}$/
const requestHeaders = new Map<string, RegExp>([
  ['accept', /^[\w*+./;,= -]{1,200}$/],
  ['anthropic-version', /^\d{4}-\d{2}-\d{2}$/],
  ['anthropic-beta', /^[\w.-]{1,100}(, ?[\w.-]{1,100}){0,60}$/],
  ['openai-beta', /^[\w.=-]{1,100}(, ?[\w.=-]{1,100}){0,20}$/],
  ['user-agent', printable],
  ['x-app', /^[\w.-]{1,64}$/],
])

const answerHeaders = new Set([
  'content-type',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
])
const rateLimit = /^(anthropic|x)-ratelimit-[a-z-]{1,100}$/

/** The request that we make instead of the sandbox's, without its body; or why there is none. */
export function requestFor(
  method: string | undefined,
  url: string,
  given: IncomingHttpHeaders,
  key: string,
  { apis, keyHeader }: Manner = anyManner,
): ModelRequest | Refusal {
  const [path = '', ...query] = url.split('?')
  const endpoint = endpoints.find(one => one.path.test(path) && one.apis.some(api => apis.includes(api)))
  const parameters = query.length === 0 ? [] : query.join('?').split('&')
  if (!endpoint || !parameters.every(one => parameter.test(one)))
    return {
      status: 404,
      type: 'not_found_error',
      message: `The host forwards ${apis.map(api => paths[api]).join(', ')} and the list of models only.`,
    }
  if (endpoint.method !== method)
    return { status: 405, type: 'invalid_request_error', message: `Use ${endpoint.method} for this path.` }
  const problem = framingProblem(endpoint.method, given)
  if (problem !== undefined) return invalid(problem)

  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    const form = requestHeaders.get(name) ?? (stainless.test(name) ? printable : undefined)
    if (!form) continue
    if (typeof value !== 'string' || !form.test(value))
      return invalid(`The header ${name} has a value that the host does not forward.`)
    headers[name] = value
  }
  if (endpoint.method === 'POST') headers['content-type'] = jsonType
  // Usage is read from what comes back, so it must come readable.
  headers['accept-encoding'] = 'identity'
  // The sandbox's own key is a placeholder; ours takes its place.
  addKey(headers, key, keyHeader ?? headerOf(given))
  const search = parameters.length === 0 ? '' : `?${parameters.join('&')}`
  return { method: endpoint.method, path: path + search, headers, content: endpoint.content }
}

const headerOf = (given: IncomingHttpHeaders): NonNullable<ChosenModel['keyHeader']> =>
  given.authorization !== undefined && given['x-api-key'] === undefined ? 'authorization' : 'x-api-key'

/** What `claude setup-token` makes of a subscription is shown in another header than a key, with a word of its own. */
const subscription = /^sk-ant-oat/
const subscriptionBeta = 'oauth-2025-04-20'

function addKey(headers: Record<string, string>, key: string, name: NonNullable<ChosenModel['keyHeader']>) {
  if (key === '') return
  if (name === 'x-api-key' && subscription.test(key)) {
    headers.authorization = `Bearer ${key}`
    const betas = headers['anthropic-beta']?.split(/, ?/) ?? []
    headers['anthropic-beta'] = [...new Set([...betas, subscriptionBeta])].join(',')
  } else headers[name] = name === 'authorization' ? `Bearer ${key}` : key
}

export const invalid = (message: string): Refusal => ({ status: 400, type: 'invalid_request_error', message })

function framingProblem(method: 'GET' | 'POST', given: IncomingHttpHeaders): string | undefined {
  const coding = given['transfer-encoding']
  const length = given['content-length']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    return 'The only transfer encoding that is read here is chunked.'
  if (coding !== undefined && length !== undefined)
    return 'A request has either a length or a transfer encoding.'
  if (method === 'GET' && (coding !== undefined || (length !== undefined && length !== '0')))
    return 'A GET request has no body.'
  if (given['content-encoding'] !== undefined) return 'Send the body without a content encoding.'
  if (method === 'POST' && !/^application\/json(; ?charset=utf-8)?$/i.test(given['content-type'] ?? jsonType))
    return 'The body has to be application/json.'
  return undefined
}

/** Shorter ones are placeholders of local servers, and words that an answer may well contain. */
const isSecret = (key: string) => key.length >= 8

/** The headers of the answer to the sandbox. One with the key in it is left out, like every one that is not named. */
export function headersOfAnswer(given: IncomingHttpHeaders, key: string): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (!answerHeaders.has(name) && !rateLimit.test(name)) continue
    if (typeof value !== 'string' || !printable.test(value)) continue
    if (!isSecret(key) || !value.includes(key)) kept[name] = value
  }
  return kept
}

export interface KeyFilter {
  push(chunk: Buffer): Buffer
  /** what was held back as the possible beginning of a key */
  end(): Buffer
}

/**
 * Takes the key out of an answer: an API, or a gateway before it, that repeats what it received must not give it to the
 * sandbox. Only the exact bytes are found. Bytes are held back only while they are the beginning of the key.
 */
export function createKeyFilter(key: string): KeyFilter {
  const secret = Buffer.from(key)
  if (!isSecret(key)) return { push: chunk => chunk, end: () => Buffer.alloc(0) }
  let held: Buffer = Buffer.alloc(0)
  return {
    push(chunk) {
      const bytes = Buffer.concat([held, chunk])
      for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at))
        bytes.fill('*', at, at + secret.length)
      let begun = Math.min(secret.length - 1, bytes.length)
      while (begun > 0 && !bytes.subarray(bytes.length - begun).equals(secret.subarray(0, begun))) begun--
      held = bytes.subarray(bytes.length - begun)
      return bytes.subarray(0, bytes.length - begun)
    },
    end() {
      return held
    },
  }
}
