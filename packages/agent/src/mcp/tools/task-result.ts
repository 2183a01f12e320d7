import { taskStatusSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { localTime } from '../local-time.ts'
import type { Surroundings } from '../tool.ts'

/** What the host answers to every command about a task, and what its tools tell of it. */
export const taskResult = z.object({
  task_id: z.string(),
  status: taskStatusSchema,
  next_run: z.iso.datetime().nullable(),
})

export const nextRunFields = {
  next_run: z.string().optional().describe('in UTC; absent: it will not run again'),
  next_run_local: z.string().optional().describe('the same in this group’s time zone'),
}

/** Absent, not null, where there is none: a type that is one of two is more than some clients' schemas can say. */
export const nextRunOf = (next_run: string | null, { timezone }: Surroundings) =>
  next_run === null ? {} : { next_run, next_run_local: localTime(next_run, timezone) }

export const taskOutput = z.object({
  request_id: z.string(),
  task_id: z.string(),
  status: taskStatusSchema,
  ...nextRunFields,
})

export const renderTask =
  (what: string) =>
  (
    { task_id, status, next_run }: z.infer<typeof taskResult>,
    { id, surroundings }: { id: string; surroundings: Surroundings },
  ) => {
    const next = nextRunOf(next_run, surroundings)
    const when = status === 'paused' ? 'When resumed it would run' : 'It runs'
    const runs = next.next_run_local === undefined ? '' : ` ${when} next at ${next.next_run_local}.`
    return {
      facts: { request_id: id, task_id, status, ...next },
      sentence: `Task ${task_id} ${what}; it is ${status}.${runs}`,
    }
  }
