import { z } from 'zod'

export const slackSettings = z.strictObject({
  token: z
    .string()
    .trim()
    .regex(
      /^xoxb-[\w-]+$/,
      'is not a bot token. It begins with xoxb- and is on the app’s page OAuth & Permissions, once the app is installed.',
    ),
  appToken: z
    .string()
    .trim()
    .regex(
      /^xapp-[\w-]+$/,
      'is not an app-level token. It begins with xapp- and is made on the app’s page Basic Information, under App-Level Tokens, with the scope connections:write.',
    ),
  /** where the Web API is served */
  server: z
    .url({ protocol: /^https?$/ })
    .default('https://slack.com/api/')
    .transform(url => `${url.replace(/\/+$/, '')}/`),
})
export type SlackSettings = z.output<typeof slackSettings>
