import { z } from 'zod'
import { instant } from '../../store/entities/instant.ts'

/** How one occurrence of a job ended. */
export const jobRunSchema = z.object({
  exitCode: z.int().nullable().describe('null: a signal ended it, it runs, or it never began'),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  taskId: z.string(),
  output: z.string().describe('what it printed; its beginning and its end, where it is too long'),
  dropped: z.int().describe('bytes of it that are not kept'),
  occurrenceId: z.string(),
  endedAt: instant,
})
export type JobRunRow = z.output<typeof jobRunSchema>
