import { z } from 'zod'

/** what a deploy is to tell the next run, until it does: what its words were written in */
export const deployContext = (request: number): string => `deploy:${request}`

/** What the command asks for, as it is kept until it is done. */
export const deployInput = z.object({
  rebuild: z.boolean(),
  head: z.string().optional(),
  resume_prompt: z.string().optional(),
  session_id: z.string().optional(),
  /** whether whoever asked is given a receipt */
  is_answered: z.boolean(),
  /** what somebody has approved: nothing else is deployed */
  approved: z.object({ revision: z.string() }).optional(),
})
export type DeployInput = z.infer<typeof deployInput>
