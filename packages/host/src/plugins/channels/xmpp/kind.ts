import { defineKind } from '../kind.ts'
import { xmppSettings } from './settings.ts'

export const xmpp = defineKind({
  name: 'xmpp',
  title: 'XMPP',
  settings: xmppSettings,
  questions: [
    { key: 'address', question: 'Address of the account, such as hatch@example.org' },
    { key: 'password', question: 'Password of the account', isSecret: true },
    { key: 'rooms', question: 'Rooms to join, with spaces between (may be empty)' },
    { key: 'server', question: 'Server, if it is not the one that DNS names for the address (may be empty)' },
  ],
  next: [
    'Write to the account from your own XMPP app, without OMEMO encryption: the chat asks to be let in.',
    'For rooms: let everybody in the room see real addresses ("non-anonymous"), then mention the assistant by its nickname.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['threads', 'quotes', 'files', 'reactions', 'edits', 'deletions', 'typing', 'absence'],
  library: ['@xmpp/client'],
  load: () => import('./channel.ts'),
})
