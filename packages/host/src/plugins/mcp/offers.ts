import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import { z } from 'zod'

/**
 * What a server has beside tools: resources and prompts. Agents get them as tools that read, for the same groups and
 * with the same labels as the server's own.
 */
type Capabilities = ReturnType<Client['getServerCapabilities']>
export type Asking = (
  client: Client,
  input: Record<string, unknown>,
  options: RequestOptions,
) => Promise<Answered>
interface Answered {
  content: readonly unknown[]
}

interface Offer {
  /** as a server would list it */
  tool: { name: string; title: string; description: string; inputSchema: object; annotations: object }
  of: 'resources' | 'prompts'
  ask: Asking
}

const most = 10_000
const cursor = z.string().max(65_536).optional().catch(undefined)
const listed = z.looseObject({ nextCursor: cursor })
const contents = z.object({
  contents: z
    .array(
      z.looseObject({
        uri: z.string(),
        mimeType: z.string().optional(),
        text: z.string().optional(),
        blob: z.string().optional(),
      }),
    )
    .max(most),
})
const messages = z.object({
  description: z.string().optional(),
  messages: z.array(z.object({ role: z.enum(['user', 'assistant']), content: z.unknown() })).max(most),
})

const text = (value: string) => ({ type: 'text', text: value })
const asJson = (value: unknown): Answered => ({ content: [text(JSON.stringify(value))] })
const page = ({ cursor: given }: Record<string, unknown>) =>
  typeof given === 'string' ? { cursor: given } : {}

const readOnly = { readOnlyHint: true }
const pageSchema = {
  type: 'object',
  properties: { cursor: { type: 'string', description: 'nextCursor of the page before' } },
}

const offers: readonly Offer[] = [
  {
    of: 'resources',
    tool: {
      name: 'list_resources',
      title: 'List resources',
      description: 'Lists what this server has to be read, and templates of addresses, page by page.',
      inputSchema: pageSchema,
      annotations: readOnly,
    },
    async ask(client, input, options) {
      const { resources, nextCursor } = await client.request(
        { method: 'resources/list', params: page(input) },
        listed.extend({ resources: z.array(z.unknown()).max(most) }),
        options,
      )
      return asJson({ resources, nextCursor, ...(await templatesOf(client, input, options)) })
    },
  },
  {
    of: 'resources',
    tool: {
      name: 'read_resource',
      title: 'Read a resource',
      description: 'Reads a resource of this server by its address.',
      inputSchema: {
        type: 'object',
        properties: {
          uri: { type: 'string', description: 'as list_resources gives it, or from a template' },
        },
        required: ['uri'],
      },
      annotations: readOnly,
    },
    async ask(client, { uri }, options) {
      const answer = await client.request(
        { method: 'resources/read', params: { uri: String(uri) } },
        contents,
        options,
      )
      return {
        content: answer.contents.map(({ uri, mimeType, text, blob }) =>
          blob !== undefined && mimeType?.startsWith('image/')
            ? { type: 'image', data: blob, mimeType }
            : {
                type: 'resource',
                resource: {
                  uri,
                  ...(mimeType === undefined ? {} : { mimeType }),
                  ...(blob === undefined ? { text: text ?? '' } : { blob }),
                },
              },
        ),
      }
    },
  },
  {
    of: 'prompts',
    tool: {
      name: 'list_prompts',
      title: 'List prompts',
      description: 'Lists the prompts of this server with their arguments, page by page.',
      inputSchema: pageSchema,
      annotations: readOnly,
    },
    async ask(client, input, options) {
      const { prompts, nextCursor } = await client.request(
        { method: 'prompts/list', params: page(input) },
        listed.extend({ prompts: z.array(z.unknown()).max(most) }),
        options,
      )
      return asJson({ prompts, nextCursor })
    },
  },
  {
    of: 'prompts',
    tool: {
      name: 'get_prompt',
      title: 'Get a prompt',
      description: 'Gets a prompt of this server, filled in with arguments.',
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          arguments: { type: 'object', additionalProperties: { type: 'string' } },
        },
        required: ['name'],
      },
      annotations: readOnly,
    },
    async ask(client, { name, arguments: given }, options) {
      const params = { name: String(name), ...(isRecord(given) ? { arguments: strings(given) } : {}) }
      const answer = await client.request({ method: 'prompts/get', params }, messages, options)
      return {
        content: [
          ...(answer.description === undefined ? [] : [text(answer.description)]),
          ...answer.messages.flatMap(({ role, content }) => [text(`${role}:`), content]),
        ],
      }
    },
  },
]

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const strings = (given: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(given).map(([key, value]) => [key, String(value)]))

/** On the first page only; many servers have none, and some do not know the question. */
async function templatesOf(client: Client, { cursor }: Record<string, unknown>, options: RequestOptions) {
  if (cursor !== undefined) return {}
  try {
    return await client.request(
      { method: 'resources/templates/list', params: {} },
      z.object({ resourceTemplates: z.array(z.unknown()).max(most) }),
      options,
    )
  } catch (error) {
    if (isRefusal(error)) return {}
    throw error
  }
}

const methodNotFound = -32_601
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === methodNotFound

/** As if the server had listed them; its own tools of the same name come first and count. */
export const offersOf = (capabilities: Capabilities): Offer['tool'][] =>
  offers.filter(({ of }) => capabilities?.[of] !== undefined).map(({ tool }) => tool)

/** By the object itself: nothing that a server lists can pass for one of these. */
export const askingOf = (candidate: unknown): Asking | undefined =>
  offers.find(({ tool }) => tool === candidate)?.ask
