import type { CallToolResult, ServerContext, ToolAnnotations } from '@modelcontextprotocol/server'
import { z } from 'zod'
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

/** What a tool needs of its caller: whether it still waits, and whether it wants to hear of progress. */
export interface CallContext {
  mcpReq: Pick<ServerContext['mcpReq'], 'signal' | '_meta' | 'notify'>
}

export interface Failure {
  /**
   * one of the host's codes, or `not_sent`, `withdrawn`, `unknown_outcome`, `no_snapshot`, `unexpected_result`,
   * `invalid_arguments`, `failed`
   */
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
    context: CallContext,
  ): Told<z.infer<Output>> | Promise<Told<z.infer<Output>>>
}

/** A JSON Schema of an object, as every client can read it. */
export type ObjectSchema = { type: 'object' } & Record<string, unknown>

/** A tool as clients are shown it. */
interface ToolListing {
  name: string
  title: string
  description: string
  inputSchema: ObjectSchema
  outputSchema?: Record<string, unknown>
  annotations: ToolAnnotations
}

/** A tool that can be offered, whatever it takes and gives. */
export interface Tool {
  name: string
  listing(): ToolListing
  call(args: Record<string, unknown>, session: Session, context: CallContext): Promise<CallToolResult>
}

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  const { name, title, description, annotations, input, output, call } = definition
  let listing: ToolListing | undefined
  return {
    name,
    listing() {
      listing ??= {
        name,
        title,
        description,
        inputSchema: { ...z.toJSONSchema(input, { io: 'input' }), type: 'object' },
        outputSchema: z.toJSONSchema(output),
        annotations,
      }
      return listing
    },
    async call(args, session, context) {
      const parsed = input.safeParse(args)
      if (parsed.success) return resultOf(await call(parsed.data, session, context))
      const wrong = parsed.error.issues.map(({ path, message }) =>
        path.length === 0 ? message : `${path.join('.')}: ${message}`,
      )
      return failed({ code: 'invalid_arguments', message: `Nothing was sent: ${wrong.join('. ')}` })
    },
  }
}

/** Some clients show the model only the text, others only the structured content: the same facts are in both. */
function resultOf(told: Told<Record<string, unknown>>): CallToolResult {
  if ('failure' in told) return failed(told.failure)
  return {
    content: [{ type: 'text', text: `${told.sentence}\n${JSON.stringify(told.facts)}` }],
    structuredContent: told.facts,
  }
}

export const failed = (failure: Failure): CallToolResult => ({
  isError: true,
  content: [{ type: 'text', text: failure.message }],
  _meta: { [failureKey]: failure },
})
