import { defineKind } from '../kind.ts'
import { ircSettings } from './settings.ts'

export const irc = defineKind({
  name: 'irc',
  title: 'IRC',
  settings: ircSettings,
  questions: [
    { key: 'server', question: 'Server, such as irc.example.org' },
    { key: 'nickname', question: 'Nickname of the assistant' },
    { key: 'account', question: 'Its account at the network’s services (may be empty)' },
    { key: 'password', question: 'Password of that account (may be empty)', isSecret: true },
    { key: 'channels', question: 'Channels to join, with spaces between (may be empty)' },
    {
      key: 'nicknames',
      question: 'Hear people without an account, too? Anybody can take their nickname (yes or no, empty: no)',
    },
  ],
  next: [
    'Sign in to your own account at the network’s services: only people with an account are heard.',
    'Write to the assistant, or mention its nickname in a channel: the chat asks to be let in.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: [],
  library: ['irc-framework'],
  load: () => import('./channel.ts'),
})
