import { z } from 'zod'

/** Chats `webhook:{name}`, for programs. */
export const webhookSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where messages to `webhook:` chats are posted.')
    .meta({ allowed: 'an http or https address', otherwise: 'no webhook' }),
  secretVariable: z
    .string()
    .min(1)
    .default('HATCHWAY_WEBHOOK_SECRET')
    .describe('The variable of the host’s environment that signs webhook messages in both directions.')
    .meta({ allowed: 'the name of a variable' }),
})

export type WebhookSettings = z.output<typeof webhookSchema>
