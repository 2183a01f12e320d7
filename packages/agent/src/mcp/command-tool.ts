import type { CommandType, payloads } from '@hatchway/protocol'
import type { z } from 'zod'
import { askHost } from './ask-host.ts'
import {
  defineTool,
  type Failure,
  type Surroundings,
  type Told,
  type Tool,
  type ToolDefinition,
} from './tool.ts'

type Shared<Input extends z.ZodObject, Output extends z.ZodObject> = Omit<
  ToolDefinition<Input, Output>,
  'call'
>

interface CommandToolDefinition<
  Type extends CommandType,
  Input extends z.ZodObject,
  Result extends z.ZodType,
  Output extends z.ZodObject,
> extends Shared<Input, Output> {
  command: Type
  payload(args: z.infer<Input>, surroundings: Surroundings): z.input<(typeof payloads)[Type]>
  /** where the tool has another name for a field of the payload */
  names?: Record<string, string>
  /** how long the host allows itself; left out: as long as for anything */
  hostMs?: number
  /** what the host answers when it is done */
  result: Result
  render(
    result: z.infer<Result>,
    about: { id: string; surroundings: Surroundings },
  ): { facts: z.infer<Output>; sentence: string }
}

/** A tool that is one command to the host: sent, waited for, and told as the host decided it. */
export function commandTool<
  Type extends CommandType,
  Input extends z.ZodObject,
  Result extends z.ZodType,
  Output extends z.ZodObject,
>(definition: CommandToolDefinition<Type, Input, Result, Output>): Tool {
  const { command, payload, names = {}, hostMs, result, render, ...shared } = definition
  return defineTool({
    ...shared,
    async call(args, session, context): Promise<Told<z.infer<Output>>> {
      const { surroundings } = session
      const sent = { ...payload(args, surroundings) }
      const answer = await askHost(command, sent, { session, context, names, hostMs })
      if ('failure' in answer) return answer
      const understood = result.safeParse(answer.result)
      return understood.success
        ? render(understood.data, { id: answer.id, surroundings })
        : { failure: notUnderstood(answer.id, answer.result) }
    },
  })
}

const notUnderstood = (id: string, result: Record<string, unknown>): Failure => ({
  code: 'unexpected_result',
  request_id: id,
  message: `The host did this, but described it in a way this tool does not know: ${JSON.stringify(result)}`,
})
