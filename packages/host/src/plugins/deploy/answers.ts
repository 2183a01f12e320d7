import { z } from 'zod'
import { wire } from '../../api/wire.ts'
import { deployRowSchema } from './entity.ts'

export const deploy = wire(
  deployRowSchema.omit({ request: true, isAnswered: true, resumePrompt: true, sessionId: true }),
)
export const deployAnswer = deploy.schema
export const begunDeployAnswer = deployAnswer.pick({ id: true, from: true, to: true })
export const deploysAnswer = z.array(deployAnswer)
export type DeployAnswer = z.infer<typeof deployAnswer>
