import { type Check, missingVariables } from '../../plugin-api/check.ts'
import type { CalendarAccounts } from './settings.ts'

export const checks: readonly Check<CalendarAccounts>[] = [
  {
    name: 'passwords',
    run: ({ settings, environment }) =>
      missingVariables(
        environment,
        Object.entries(settings).map(([name, { passwordVariable }]) => ({
          variable: passwordVariable,
          neededBy: `the calendar ${name}`,
        })),
      ),
  },
]
