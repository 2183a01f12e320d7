import { scheduleTypeSchema, taskStatusSchema } from '@hatchway/protocol'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { z } from 'zod'
import type { DriverContext } from '../types.ts'

/** The hatch's tools, called the way any agent calls them: as an MCP client, over the pipes of a server of its own. */
export interface Tools {
  schedule(task: ScheduledTask): Promise<TaskAnswer>
  update(id: string, changes: Partial<ScheduledTask>): Promise<TaskAnswer>
  change(verb: 'pause' | 'resume' | 'cancel', id: string): Promise<TaskAnswer>
  list(): Promise<readonly ListedTask[]>
  close(): Promise<void>
}

interface ScheduledTask {
  prompt: string
  schedule_type: 'cron' | 'interval' | 'once'
  schedule_value: string
  timezone: string
}

const answerSchema = z.object({
  task_id: z.string(),
  status: taskStatusSchema,
  next_run: z.iso.datetime().optional(),
})
export type TaskAnswer = z.infer<typeof answerSchema>

const listSchema = z.object({
  tasks: z.array(
    z.object({
      id: z.string(),
      group: z.string(),
      prompt: z.string(),
      schedule_type: scheduleTypeSchema,
      schedule_value: z.string(),
      timezone: z.string(),
      status: taskStatusSchema,
      next_run: z.iso.datetime().optional(),
    }),
  ),
})
export type ListedTask = z.infer<typeof listSchema>['tasks'][number]

/** The host, or the way to it, said no: its words are for the person who asked. */
export class ToolRefusal extends Error {}

export function connectTools({ start, environment, emit }: DriverContext): Tools {
  const { command, args, env } = environment.mcpServer
  const transport = new StdioClientTransport({
    command,
    args,
    env: { ...env, TZ: start.timezone, HATCHWAY_EVENTS: start.events },
    stderr: 'inherit',
  })
  const client = new Client({ name: 'hatchway-concierge', version: '1' })
  // Begun at once, so that the server starts while the message is still being read.
  const connected = client.connect(transport)
  // Whoever calls a tool hears of it.
  connected.catch(() => {})

  async function call<T>(
    name: string,
    parameters: Record<string, unknown>,
    schema: z.ZodType<T>,
  ): Promise<T> {
    emit({ type: 'step', kind: 'tool_call', name, text: JSON.stringify(parameters) })
    await connected
    const result = await client.callTool({ name, arguments: parameters })
    const text = result.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
    emit({ type: 'step', kind: 'tool_result', name, text })
    if (result.isError) throw new ToolRefusal(text)
    return schema.parse(result.structuredContent)
  }

  return {
    schedule: task => call('schedule_task', { ...task, context_mode: 'isolated' }, answerSchema),
    update: (id, changes) => call('update_task', { task_id: id, ...changes }, answerSchema),
    change: (verb, id) => call(`${verb}_task`, { task_id: id }, answerSchema),
    list: async () => (await call('list_tasks', {}, listSchema)).tasks,
    close: () => client.close(),
  }
}
