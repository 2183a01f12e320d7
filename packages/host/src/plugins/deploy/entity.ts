import { errorCodeSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { instant } from '../../store/entities/instant.ts'

/** A restart with other code. */
export const deployRowSchema = z.object({
  id: z.int(),
  group: z.string().nullable().describe('whose agent asked; null: an operator'),
  from: z.string(),
  to: z.string(),
  /** that was checked out; null: a revision without one */
  branch: z.string().nullable(),
  rebuild: z.boolean(),
  /**
   * building      its commands run; the process that asked for it still runs
   * restarting    handed over to the supervisor
   * done          the new revision runs
   * rolled_back   the new revision did not come up, and the one before runs
   * failed        nothing was restarted, or there was nothing to go back to
   */
  status: z.enum(['building', 'restarting', 'done', 'rolled_back', 'failed']),
  code: errorCodeSchema.nullable(),
  error: z.string().nullable(),
  createdAt: instant,
  endedAt: instant.nullable(),
  /** of the agent's request; null: an operator asked */
  request: z.int().nullable(),
  /** whether whoever asked is given a receipt */
  isAnswered: z.boolean(),
  resumePrompt: z.string().nullable(),
  /** of the agent's own; only where the host knows none */
  sessionId: z.string().nullable(),
})
export type DeployRow = z.output<typeof deployRowSchema>
export type NewDeploy = Omit<DeployRow, 'id' | 'status' | 'code' | 'error' | 'endedAt'>
export type DeployEnd = Pick<DeployRow, 'code' | 'error'> & { status: 'done' | 'rolled_back' | 'failed' }
