import type { ServiceListing } from '@hatchway/protocol'
import type { CallToolResult } from '@modelcontextprotocol/server'
import { askHost } from './ask-host.ts'
import { failed, failureKey, type ObjectSchema, type Tool } from './tool.ts'

/** A tool of a service of the host. Arguments go to the host as they are, which checks them; so does the answer come back. */
export function serviceTool(service: ServiceListing): Tool | { problem: string } {
  const inputSchema = objectSchema(service.input_schema)
  if (!inputSchema) return { problem: 'its arguments are no object' }
  const { title, description, annotations, output_schema } = service
  const name = mcpName(service.name)
  return {
    name,
    listing: () => ({
      name,
      title,
      description,
      inputSchema,
      // One that describes no object is for the protocol's newest revision, and is fitted to the others on the way.
      ...(output_schema ? { outputSchema: objectSchema(output_schema) ?? output_schema } : {}),
      annotations,
    }),
    async call(args, session, context) {
      const { name: tool, command, timeout_ms: hostMs } = service
      const answer = await (command === undefined
        ? askHost('call_service', { tool, arguments: args }, { session, context, hostMs })
        : askHost(command, args, { session, context, hostMs }))
      if ('failure' in answer) return failed(answer.failure)
      const { id, result } = answer
      const told = service.answers === 'facts' ? factsResult(result) : await contentResult(result)
      const useless = (code: string, message: string) => failed({ code, request_id: id, message })
      if (!told) {
        return useless(
          'unexpected_result',
          'The service answered, but not as MCP tools do: what it said cannot be passed on.',
        )
      }
      if (Buffer.byteLength(JSON.stringify(told)) > largest) {
        return useless(
          'answer_too_large',
          'The service answered, but with more than can be passed on. Ask for less.',
        )
      }
      return told
    },
  }
}

/** Clients hang up on a message that is larger than 10 MiB, all of it counted. */
const largest = 8_388_608

/** The host's names may have a colon in them, which MCP's may not. */
const mcpName = (name: string): string => name.replaceAll(':', '_')

/** With what older clients insist on: `type`, and properties that are objects where JSON Schema allows true and false. */
function objectSchema(schema: Record<string, unknown>): ObjectSchema | undefined {
  const { type = 'object', properties } = schema
  if (type !== 'object') return undefined
  if (typeof properties !== 'object' || properties === null) return { ...schema, type }
  const spelledOut = Object.entries(properties).map(([name, property]) => [
    name,
    property === true ? {} : property === false ? { not: {} } : property,
  ])
  return { ...schema, type, properties: Object.fromEntries(spelledOut) }
}

const factsResult = (facts: Record<string, unknown>): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(facts) }],
  structuredContent: facts,
})

/** Only what the result of a tool is made of: it must not ask the client for something, nor speak in our name. */
async function contentResult(result: Record<string, unknown>): Promise<CallToolResult | undefined> {
  const { content, structuredContent, isError, _meta } = result
  const told = {
    content: content ?? (structuredContent === undefined ? undefined : textOf(structuredContent)),
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  }
  // The concierge does without all of this library until a service answers so.
  const { isCallToolResult } = await import('@modelcontextprotocol/server')
  if (!isCallToolResult(told)) return undefined
  if (told._meta) delete told._meta[failureKey]
  return told
}

const textOf = (value: unknown) => [{ type: 'text', text: JSON.stringify(value) }]
