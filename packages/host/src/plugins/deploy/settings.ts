import { z } from 'zod'
import { commands, path, whole } from '../../config/values.ts'

/** How the main group may have this host restarted with other code. Off unless this turns it on. */
export const deploySchema = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('no')
    .describe('Whether the main group may deploy; only under `hatchway supervise`. See docs/privileged.md.'),
  directory: path
    .optional()
    .describe('The git checkout that the daemon runs from.')
    .meta({ allowed: 'an absolute path', otherwise: 'Hatchway’s own' }),
  build: commands
    .default([])
    .describe('Commands that make the checkout ready to run, one after the other.')
    .meta({ allowed: 'a list of shell commands', otherwise: 'none' }),
  check: commands
    .default([])
    .describe('Commands that must succeed before the restart.')
    .meta({ allowed: 'a list of shell commands', otherwise: 'none' }),
  commandMs: whole(1000, 3_600_000).default(900_000).describe('How long one of these commands may take.'),
  healthMs: whole(1000, 600_000)
    .default(60_000)
    .describe('How long the new process may take to come up. After that the revision before is started.'),
})
export type DeploySettings = z.output<typeof deploySchema>
