import { type Check, missingVariables } from '../../plugin-api/check.ts'
import type { WebhookSettings } from './settings.ts'

export const checks: readonly Check<WebhookSettings>[] = [
  {
    name: 'secret',
    run: ({ settings: { url, secretVariable }, environment }) =>
      url === undefined
        ? []
        : missingVariables(environment, [{ variable: secretVariable, neededBy: 'webhooks' }]),
  },
]
