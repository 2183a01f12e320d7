import { z } from 'zod'

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
  /** in all chats together; Telegram takes about 30: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this */
  perSecond: z.coerce.number().int().min(1).max(1000).default(25),
  /** where the Bot API is served */
  server: z
    .url({ protocol: /^https?$/ })
    .default('https://api.telegram.org')
    .transform(url => url.replace(/\/+$/, '')),
})
export type TelegramSettings = z.output<typeof telegramSettings>
