import { defineKind } from '../kind.ts'
import { telegramSettings } from './settings.ts'

export const telegram = defineKind({
  name: 'telegram',
  title: 'Telegram',
  settings: telegramSettings,
  questions: [
    { key: 'token', question: 'Token of the bot (write /newbot to @BotFather)', isSecret: true },
    {
      key: 'pool',
      question: 'Tokens of further bots that show who speaks in a group, with spaces between (may be empty)',
      isSecret: true,
    },
  ],
  next: [
    'Open the bot in Telegram, press Start, and write something: the chat asks to be let in.',
    'For groups: write /setprivacy to @BotFather and choose Disable, then add the bot to the group and mention it.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['buttons', 'threads', 'quotes', 'files', 'reactions', 'edits', 'typing', 'absence'],
  library: ['grammy'],
  load: () => import('./channel.ts'),
})
