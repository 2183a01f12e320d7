import { called, openSession } from '../../../mcp/session.ts'
import { failureKey, type Tool } from '../../../mcp/tool.ts'
import type { DriverContext } from '../../types.ts'
import { type Part, textPart } from '../messages.ts'
import type { AssistantTool } from './types.ts'

/** The hatch's tools, and those of the host's services, as any agent has them. They are called in this process. */
export interface HatchTools {
  tools(): readonly AssistantTool[]
  close(): Promise<void>
}

export function openHatchTools({ start, environment }: DriverContext): HatchTools {
  const { session, offer } = openSession(
    { ...environment.mcpServer.env, HATCHWAY_EVENTS: start.events },
    { timezone: start.timezone },
  )
  const underWay = new Set<Promise<unknown>>()
  const ending = new AbortController()
  let made: { of: ReadonlyMap<string, Tool>; tools: readonly AssistantTool[] } | undefined

  const toolOf = (tool: Tool): AssistantTool => {
    const { description, inputSchema } = tool.listing()
    const { $schema: _, ...schema } = inputSchema
    return {
      name: tool.name,
      description,
      schema,
      async call(args, signal) {
        const answer = called(tool, args, session, {
          mcpReq: { signal: AbortSignal.any([signal, ending.signal]), notify: async () => {} },
        })
        underWay.add(answer)
        const { content, isError = false, _meta } = await answer.finally(() => underWay.delete(answer))
        const parts = content.map(partOf)
        const failure = _meta?.[failureKey]
        const isMisused =
          typeof failure === 'object' &&
          failure !== null &&
          'code' in failure &&
          failure.code === 'invalid_arguments'
        // A model that was shown less of it learns here what it takes.
        return {
          parts: isMisused ? [...parts, textPart(`It takes: ${JSON.stringify(schema)}`)] : parts,
          isError,
        }
      },
    }
  }
  return {
    tools() {
      const found = offer.tools()
      if (made?.of !== found) made = { of: found, tools: [...found.values()].map(toolOf) }
      return made.tools
    },
    async close() {
      // What the host has not begun with is taken back.
      ending.abort()
      await Promise.allSettled(underWay)
    },
  }
}

type Content = Awaited<ReturnType<Tool['call']>>['content'][number]

const shownImages = /^image\/(png|jpeg|gif|webp)$/

function partOf(block: Content): Part {
  if (block.type === 'text') return textPart(block.text)
  if (block.type === 'image' && shownImages.test(block.mimeType))
    return { type: 'image', mime: block.mimeType, data: block.data }
  if (block.type === 'resource' && 'text' in block.resource) return textPart(block.resource.text)
  if (block.type === 'resource_link') return textPart(`${block.name}: ${block.uri}`)
  return textPart(`(something of the kind ${block.type} that cannot be shown here)`)
}
