import type {
  CallToolResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
  ToolAnnotations,
} from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { Hatch } from './hatch.ts'

/** What a tool knows of the run it serves. Nothing here gives a right: the host looks those up itself (promise 2). */
export interface Surroundings {
  ipc: string
  main: boolean
  /** the zone that times without an offset are meant in */
  timezone: string
}

export interface Session {
  surroundings: Surroundings
  hatch: Hatch
  progressMs: number
}

export interface Failure {
  /** one of the host's codes, or `not_sent`, `withdrawn`, `unknown_outcome`, `no_snapshot`, `unexpected_result` */
  code: string
  message: string
  request_id?: string
}

/** What came of a call: the facts, and a sentence that tells them; or why not. */
export type Told<Facts> = { facts: Facts; sentence: string } | { failure: Failure }

/** Where clients find a failure's code: a failure has no structured content, as v1 clients hold that to the output schema. */
export const failureKey = 'hatchway/failure'

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  name: string
  title: string
  description: string
  input: Input
  output: Output
  annotations: Required<Omit<ToolAnnotations, 'title'>>
  call(
    args: z.infer<Input>,
    session: Session,
    context: ServerContext,
  ): Told<z.infer<Output>> | Promise<Told<z.infer<Output>>>
}

/** A tool that can be put on a server, whatever it takes and gives. */
export interface Tool {
  name: string
  register(server: McpServer, session: Session): void
}

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  const { name, title, description, annotations, input, output, call } = definition
  const inputSchema: StandardSchemaWithJSON = input
  const outputSchema: StandardSchemaWithJSON = output
  return {
    name,
    register(server, session) {
      server.registerTool(
        name,
        { title, description, inputSchema, outputSchema, annotations },
        async (args, context) => resultOf(await call(input.parse(args), session, context)),
      )
    },
  }
}

/** Some clients show the model only the text, others only the structured content: the same facts are in both. */
function resultOf(told: Told<Record<string, unknown>>): CallToolResult {
  if ('failure' in told) {
    return {
      isError: true,
      content: [{ type: 'text', text: told.failure.message }],
      _meta: { [failureKey]: told.failure },
    }
  }
  return {
    content: [{ type: 'text', text: `${told.sentence}\n${JSON.stringify(told.facts)}` }],
    structuredContent: told.facts,
  }
}
