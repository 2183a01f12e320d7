import { z } from 'zod'
import { defineKind } from '../kind.ts'

const token = z
  .string()
  .trim()
  .regex(/^\d+:[\w-]+$/, 'is not a bot token. It looks like 123456:ABC-DEF1234 and comes from @BotFather.')

export const telegramSettings = z.strictObject({
  token,
  /** further bots, each of which speaks for one `sender` at a time; a text has them one after another */
  pool: z
    .preprocess(
      given => (typeof given === 'string' ? given.split(/[\s,]+/).filter(Boolean) : given),
      z.array(token),
    )
    .default([]),
  /** where the Bot API is served */
  server: z
    .url({ protocol: /^https?$/ })
    .default('https://api.telegram.org')
    .transform(url => url.replace(/\/+$/, '')),
})
export type TelegramSettings = z.output<typeof telegramSettings>

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
