import { z } from 'zod'
import { isWithoutPassword, variableName, whole } from './values.ts'

/** Who looks at doubtful actions before a person has to. The key stays in the environment; the file names its variable. */
export const inspectorSchema = z.strictObject({
  model: z
    .string()
    .regex(/^[\w.:@/-]{1,128}$/, 'must be the name of a model')
    .optional()
    .describe('The model that looks at doubtful actions before a person is asked. Costs a request for each.')
    .meta({ allowed: 'the name of a model', otherwise: 'none, fixed rules only' }),
  url: z
    .url({ protocol: /^https?$/ })
    .refine(isWithoutPassword, 'must not hold a user or a password; use keyVariable')
    .default('https://api.anthropic.com')
    .describe('The Messages API it is asked through.')
    .meta({ allowed: 'an http or https address' }),
  keyVariable: variableName
    .default('ANTHROPIC_API_KEY')
    .describe('The host’s environment variable with the API key. Sandboxes never see it.')
    .meta({ allowed: 'the name of a variable' }),
  timeoutMs: whole(100, 120_000)
    .default(15_000)
    .describe('How long the model may take. After that a person is asked.'),
  cacheMinutes: whole(0, 1440)
    .default(10)
    .describe('How long a clear verdict holds for exactly the same action. 0: each time anew.'),
})

export type InspectorSettings = z.output<typeof inspectorSchema>
