import { defineKind } from '../kind.ts'
import { matrixSettings } from './settings.ts'

export const matrix = defineKind({
  name: 'matrix',
  title: 'Matrix',
  settings: matrixSettings,
  questions: [
    { key: 'server', question: 'Address of the homeserver, such as https://matrix.org' },
    {
      key: 'user',
      question: 'User that the assistant is, such as @hatch:matrix.org (an account of its own)',
    },
    { key: 'password', question: 'Its password (empty: an access token instead)', isSecret: true },
    { key: 'token', question: 'Access token (empty where you gave a password)', isSecret: true },
    {
      key: 'inviters',
      question: 'Users whose invitations it accepts at once, with spaces between (may be empty)',
    },
  ],
  next: [
    'In your Matrix app, start a chat with the user, or invite it to a room: the invitation asks to be let in.',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['buttons', 'threads', 'quotes', 'files', 'reactions', 'edits', 'deletions', 'typing', 'absence'],
  library: ['@matrix-org/matrix-sdk-crypto-wasm', 'fake-indexeddb'],
  load: () => import('./channel.ts'),
})
