import { z } from 'zod'
import { paths, variableName, whole } from '../../config/values.ts'

/** Commands on the host that the main group may have run on a schedule. Off unless this turns it on. */
export const hostJobsSchema = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('no')
    .describe('Whether the main group may have commands run on this host; see docs/privileged.md.'),
  directories: paths
    .default([])
    .describe(
      'Where such commands may run: these directories and what lies below. The first is the usual one.',
    )
    .meta({ allowed: 'a list of absolute paths', otherwise: 'none, so nothing runs' }),
  users: z
    .array(z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'must be the name of a user'))
    .default([])
    .describe('Whom they may run as; the first is the usual one. Only a daemon that is root can be another.')
    .meta({ allowed: 'a list of users', otherwise: 'the daemon’s own, unless that is root' }),
  variables: z
    .array(variableName)
    .default([])
    .describe('Variables of the host’s environment that they get, beside PATH, HOME, USER, LANG and TZ.')
    .meta({ allowed: 'a list of names', otherwise: 'none' }),
  atOnce: whole(1, 100).default(2).describe('Commands that may run at the same time. Others wait.'),
  longestSeconds: whole(1, 86_400)
    .default(3600)
    .describe('The longest time-out a command may have. After its time-out all its processes are ended.'),
  outputBytes: whole(1024, 16_777_216)
    .default(65_536)
    .describe('What is kept of the output of one run: half from its beginning, half from its end.'),
})
export type HostJobsSettings = z.output<typeof hostJobsSchema>
