import { z } from 'zod'

export const discordSettings = z.strictObject({
  token: z
    .string()
    .trim()
    .regex(
      /^[\w-]{10,}\.[\w-]{4,}\.[\w-]{10,}$/,
      'is not a bot token. It has three parts with dots between them. Get it at https://discord.com/developers/applications: your application, Bot, Reset Token.',
    ),
  /** where the API is served */
  server: z
    .url({ protocol: /^https?$/ })
    .default('https://discord.com/api')
    .transform(url => url.replace(/\/+$/, '')),
})
export type DiscordSettings = z.output<typeof discordSettings>
