import { z } from 'zod'
import { instant } from './instant.ts'

export const taintSchema = z.object({ corrupted: z.boolean(), secret: z.boolean() })

/** Why a context is tainted: what it read first, and when. */
export const taintRowSchema = z.object({
  /** its folder, or what stands for it: a repository that several groups read */
  group: z.string().describe('a folder; `repo:…` for what was merged into a repository'),
  context: z
    .string()
    .describe(
      '`session`: the group’s folder and home; a task or its result, its name, `shelf:NAME` for the data that a service keeps',
    ),
  corruptedBy: z.string().nullable(),
  corruptedAt: instant.nullable(),
  secretBy: z.string().nullable(),
  secretAt: instant.nullable(),
})
export type TaintRow = z.output<typeof taintRowSchema>
