import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { pause } from '../../base/pause.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { FailedUnderway } from './failure.ts'

/**
 * A tool that runs as a task: the call is answered with a task, which is asked about until it is over, and then for its
 * result. The library knows these messages and has no code for them. Nobody is there whom the server could ask in
 * between.
 */
const taskSchema = z.looseObject({
  taskId: z.string().min(1).max(1024),
  status: z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: z.string().optional().catch(undefined),
  pollInterval: z.number().optional().catch(undefined),
})
const begun = z.looseObject({ task: taskSchema })
const resultSchema = z.looseObject({})

const shortestPollMs = 100
const longestPollMs = 5000
const usualPollMs = 1000
const cancelMs = 5000

interface TaskOptions extends RequestOptions {
  signal: AbortSignal
  /** how long the server keeps the result */
  ttlMs: number
  said(message: string): void
}

export async function callAsTask(
  client: Client,
  call: { name: string; arguments: Record<string, unknown> },
  { ttlMs, said, ...options }: TaskOptions,
): Promise<Record<string, unknown>> {
  const params = { ...call, task: { ttl: ttlMs } }
  let { task } = await client.request({ method: 'tools/call', params }, begun, options)
  const { taskId } = task
  try {
    while (task.status === 'working') {
      if (task.statusMessage !== undefined) said(task.statusMessage)
      const { pollInterval = usualPollMs } = task
      await pause(Math.min(longestPollMs, Math.max(shortestPollMs, pollInterval)), options.signal)
      options.signal.throwIfAborted()
      task = await client.request({ method: 'tasks/get', params: { taskId } }, taskSchema, options)
    }
    if (task.status === 'input_required')
      throw new ServiceRefusal(
        'service_failed',
        'The server wants to ask a person first, which a lent server cannot. Ask with ask_user, and call the tool with more arguments.',
      )
    return await client.request({ method: 'tasks/result', params: { taskId } }, resultSchema, options)
  } catch (error) {
    if (task.status === 'working' || task.status === 'input_required') void cancel(client, taskId)
    throw error instanceof ServiceRefusal ? error : new FailedUnderway(error)
  }
}

/** One that is over by itself says no, and one that is gone nothing. */
const cancel = (client: Client, taskId: string): Promise<unknown> =>
  client
    .request({ method: 'tasks/cancel', params: { taskId } }, resultSchema, { timeout: cancelMs })
    .catch(() => undefined)
