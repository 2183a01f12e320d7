import type { CommandType, payloads } from '@hatchway/protocol'
import type { ServerContext } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { Outcome } from './hatch.ts'
import { beginProgress } from './progress.ts'
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
  /** what the host answers when it is done */
  result: Result
  tell(
    result: z.infer<Result>,
    about: { id: string; surroundings: Surroundings },
  ): { facts: z.infer<Output>; sentence: string }
}

/** A tool that is one command to the host: sent, waited for, and told as the host decided it (lesson 16). */
export function commandTool<
  Type extends CommandType,
  Input extends z.ZodObject,
  Result extends z.ZodType,
  Output extends z.ZodObject,
>(definition: CommandToolDefinition<Type, Input, Result, Output>): Tool {
  const { command, payload, names = {}, result, tell, ...shared } = definition
  return defineTool({
    ...shared,
    async call(args, { hatch, surroundings, progressMs }, context): Promise<Told<z.infer<Output>>> {
      const progress = beginProgress(context, progressMs)
      try {
        const outcome = await hatch.request(command, { ...payload(args, surroundings) }, waiting(context))
        if (outcome.state !== 'answered' || !outcome.receipt.ok) return { failure: failureOf(outcome, names) }
        const { id } = outcome.receipt
        const understood = result.safeParse(outcome.receipt.result)
        return understood.success
          ? tell(understood.data, { id, surroundings })
          : { failure: notUnderstood(id, outcome.receipt.result) }
      } finally {
        progress.end()
      }
    },
  })
}

const waiting = (context: ServerContext) => ({ signal: context.mcpReq.signal })

function failureOf(outcome: Outcome, names: Record<string, string>): Failure {
  switch (outcome.state) {
    case 'unsent': {
      const { code } = outcome.error
      const reason = outcome.error.message.replace(
        /^payload\.(\w+)/,
        (_, field: string) => names[field] ?? field,
      )
      return { code, message: `Nothing was sent (${code}): ${reason}` }
    }
    case 'withdrawn':
      return {
        code: 'withdrawn',
        request_id: outcome.id,
        message:
          `This did not happen and will not: ${outcome.reason}, the host had not begun, and request ${outcome.id} ` +
          'was taken back. The host seems not to be running, or is busy; try again later.',
      }
    case 'unknown':
      return {
        code: 'unknown_outcome',
        request_id: outcome.id,
        message:
          `It is unknown whether this happened: the host took request ${outcome.id}, but ${outcome.reason}. ` +
          'Claim neither that it did nor that it did not. Look (for instance with list_tasks) before trying again.',
      }
    case 'answered': {
      if (outcome.receipt.ok) throw new Error('an answer that is no refusal was told as one')
      const { id, error } = outcome.receipt
      return {
        code: error.code,
        request_id: id,
        message: `The host refused this (${error.code}): ${error.message}`,
      }
    }
  }
}

const notUnderstood = (id: string, result: Record<string, unknown>): Failure => ({
  code: 'unexpected_result',
  request_id: id,
  message: `The host did this, but described it in a way this tool does not know: ${JSON.stringify(result)}`,
})
