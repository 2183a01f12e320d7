import { z } from 'zod'
import { defineKind } from '../kind.ts'

const address = (what: string) =>
  z
    .string()
    .trim()
    .toLowerCase()
    .regex(/^[^\s@/]+@[^\s@/]+$/, `is not ${what}`)

export const xmppSettings = z.strictObject({
  address: address('an XMPP address. It looks like hatch@example.org.'),
  password: z.string().min(1, 'is empty. It is the password of the account.'),
  /** where to connect; empty: what the domain of the address says in DNS */
  server: z
    .string()
    .trim()
    .regex(
      /^$|^(xmpps?:\/\/)?([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?$/i,
      'is not a server. It looks like example.org, example.org:5222 or xmpps://example.org:5223.',
    )
    .default(''),
  /** rooms to be in from the start; a text has them one after another */
  rooms: z
    .preprocess(
      given => (typeof given === 'string' ? given.split(/[\s,]+/).filter(Boolean) : given),
      z.array(address('a room. It looks like friends@rooms.example.org.')),
    )
    .default([]),
  /** in rooms; empty: the name of the assistant */
  nickname: z.string().trim().max(64, 'is longer than 64 characters.').default(''),
})
export type XmppSettings = z.output<typeof xmppSettings>

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
