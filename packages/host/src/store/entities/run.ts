import type { Task } from '@hatchway/protocol'
import { z } from 'zod'
import { instant } from './instant.ts'

/** `stopped`: a person ended it, or the host stopped while it worked; nothing was wrong with it */
export const runStatuses = ['running', 'done', 'failed', 'stopped'] as const

export const runSchema = z.object({
  id: z.string(),
  group: z.string(),
  kind: z.enum(['chat', 'task']),
  taskId: z.string().nullable(),
  occurrenceId: z.string().nullable(),
  /** the one that was really used; `none` until one is chosen */
  sandbox: z.string(),
  image: z.string().nullable(),
  /** `image`: whatever agent the image brings */
  driver: z.string(),
  sessionId: z.string().nullable(),
  status: z.enum(runStatuses),
  startedAt: instant,
  endedAt: instant.nullable(),
  /** what it said last */
  result: z.string().nullable(),
  error: z.string().nullable(),
})
export type RunRow = z.output<typeof runSchema>
export type RunStatus = RunRow['status']

export const stepSchema = z.object({
  runId: z.string(),
  at: instant,
  /** a run's step as the runner told it, or `input`, `result`, `error`, `log` */
  kind: z.string(),
  name: z.string().nullable(),
  text: z.string(),
})
export type StepRow = z.output<typeof stepSchema>

/** One time that a task was due. It is claimed before it runs, so it runs once. */
export const occurrenceSchema = z.object({
  id: z.string(),
  dueAt: instant,
  /** somebody asked for it now; it is no time of the schedule's */
  manual: z.boolean(),
  /** claimed → running → done | failed; claimed → skipped (paused, no rights any more, not woken, missed) */
  status: z.enum(['claimed', 'running', 'done', 'failed', 'skipped']),
  runId: z.string().nullable(),
  startedAt: instant.nullable(),
  endedAt: instant.nullable(),
  result: z.string().nullable(),
  error: z.string().nullable(),
  taskId: z.string(),
  group: z.string(),
  claimedAt: instant,
})
export type OccurrenceRow = z.output<typeof occurrenceSchema>
export type OccurrenceStatus = OccurrenceRow['status']

/** What becomes of a task once an occurrence is claimed. */
export interface TaskMove {
  status: Task['status']
  nextRun: number | null
  /** why, in place of the last result */
  note?: string
}

/** What a group's agent asked of a model on one day. */
export const usageSchema = z.object({
  /** 2026-01-31, UTC */
  day: z.string(),
  group: z.string(),
  model: z.string(),
  requests: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  /** of the input, what came from the provider's cache */
  cachedTokens: z.number(),
})
export type Usage = z.output<typeof usageSchema>
