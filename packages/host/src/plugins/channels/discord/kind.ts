import { defineKind } from '../kind.ts'
import { discordSettings } from './settings.ts'

export const discord = defineKind({
  name: 'discord',
  title: 'Discord',
  settings: discordSettings,
  questions: [
    {
      key: 'token',
      question: 'Token of the bot (https://discord.com/developers/applications, your application, Bot)',
      isSecret: true,
    },
  ],
  next: [
    'Open the invitation link above and add the bot to your server.',
    'In the server, mention the bot in a channel: the channel asks to be let in. A direct message to the bot does the same for you alone.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['buttons', 'threads', 'quotes', 'files', 'reactions', 'edits', 'deletions', 'typing', 'absence'],
  library: ['@discordjs/core', '@discordjs/rest', '@discordjs/ws'],
  load: () => import('./channel.ts'),
})
