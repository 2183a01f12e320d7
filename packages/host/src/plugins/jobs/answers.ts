import { taskSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { occurrenceAnswer } from '../../api/answers.ts'
import { wire } from '../../api/wire.ts'
import { jobRunSchema } from './entity.ts'

const jobRun = wire(jobRunSchema).schema
const jobRunAnswer = occurrenceAnswer.extend(
  jobRun.pick({ exit_code: true, signal: true, timed_out: true }).shape,
)
const jobAnswer = taskSchema.required({ job: true }).extend({ last: jobRunAnswer.nullable() })
export const wholeJobRunAnswer = jobRunAnswer.extend(
  jobRun.pick({ task_id: true, output: true, dropped: true }).shape,
)
export const jobsAnswer = z.array(jobAnswer)
export const jobRunsAnswer = z.array(jobRunAnswer)

export type JobAnswer = z.infer<typeof jobAnswer>
export type JobRunAnswer = z.infer<typeof jobRunAnswer>
export type WholeJobRunAnswer = z.infer<typeof wholeJobRunAnswer>
