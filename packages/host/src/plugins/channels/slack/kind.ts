import { defineKind } from '../kind.ts'
import { slackSettings } from './settings.ts'

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
