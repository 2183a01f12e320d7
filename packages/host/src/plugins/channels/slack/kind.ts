import { z } from 'zod'
import { defineKind } from '../kind.ts'

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

export const slack = defineKind({
  name: 'slack',
  title: 'Slack',
  settings: slackSettings,
  questions: [
    { key: 'token', question: 'Bot token of the app (xoxb-…, page OAuth & Permissions)', isSecret: true },
    {
      key: 'appToken',
      question: 'App-level token with connections:write (xapp-…, page Basic Information)',
      isSecret: true,
    },
  ],
  next: [
    'In Slack, open the app under Apps and write something: the chat asks to be let in.',
    'For channels: invite the app (/invite @its-name) and mention it.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['buttons', 'threads', 'quotes', 'files', 'reactions', 'edits', 'deletions', 'absence'],
  library: ['@slack/socket-mode', '@slack/web-api'],
  load: () => import('./channel.ts'),
})
