import { z } from 'zod'

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
