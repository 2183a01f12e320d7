import { z } from 'zod'
import { type Part, textPart } from '../messages.ts'

export interface ToolOutput {
  parts: readonly Part[]
  isError: boolean
}

/** A tool as the model calls it, whoever does the work. */
export interface AssistantTool {
  name: string
  description: string
  schema: Readonly<Record<string, unknown>>
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<ToolOutput>
}

export const said = (text: string): ToolOutput => ({ parts: [textPart(text)], isError: false })
export const refused = (text: string): ToolOutput => ({ parts: [textPart(text)], isError: true })

/** What a tool of ours throws when the model asked for something that cannot be: told as its result. */
export class ToolProblem extends Error {}

/** A tool that this driver does itself. */
export function ownTool<Input extends z.ZodObject>(definition: {
  name: string
  description: string
  input: Input
  call(args: z.infer<Input>, signal: AbortSignal): Promise<ToolOutput> | ToolOutput
}): AssistantTool {
  const { name, description, input, call } = definition
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: 'input' })
  return {
    name,
    description,
    schema,
    async call(args, signal) {
      const parsed = input.safeParse(args)
      if (!parsed.success) {
        const wrong = parsed.error.issues.map(({ path, message }) =>
          path.length === 0 ? message : `${path.join('.')}: ${message}`,
        )
        return refused(`Nothing was done. These arguments do not fit: ${wrong.join('. ')}`)
      }
      try {
        return await call(parsed.data, signal)
      } catch (error) {
        if (error instanceof ToolProblem) return refused(error.message)
        throw error
      }
    },
  }
}
