import { z } from 'zod'

const listed = (given: unknown) => (typeof given === 'string' ? given.split(/[\s,]+/).filter(Boolean) : given)
const flag = (given: unknown) =>
  typeof given === 'string' ? ({ yes: true, no: false, '': false }[given.toLowerCase()] ?? given) : given

export const matrixSettings = z
  .strictObject({
    /** the homeserver, or the domain that says where it is */
    server: z
      .url({
        protocol: /^https?$/,
        error: 'is not an address. It looks like https://matrix.example.org.',
      })
      .transform(url => url.replace(/\/+$/, '')),
    user: z
      .string()
      .trim()
      .regex(/^@[^\s:]+:\S+$/, 'is not a Matrix user. It looks like @hatch:example.org.'),
    password: z.string().default(''),
    /** in place of the password, where the server has none */
    token: z.string().trim().default(''),
    /** users whose invitations are accepted without asking the operator; `*:example.org` is everybody of a server */
    inviters: z
      .preprocess(
        listed,
        z.array(
          z
            .string()
            .regex(/^(?:@[^\s:]+|\*):\S+$/, 'is neither a user (@ann:example.org) nor *:example.org.'),
        ),
      )
      .default([]),
    /** hear and tell devices that their owners have not verified, too */
    unverified: z.preprocess(flag, z.boolean({ error: 'is neither yes nor no.' })).default(false),
    /** replace the identity that the account got from another app */
    reset: z.preprocess(flag, z.boolean({ error: 'is neither yes nor no.' })).default(false),
  })
  .refine(({ password, token }) => (password === '') !== (token === ''), {
    path: ['password'],
    error: 'give either the password or an access token.',
  })
export type MatrixSettings = z.output<typeof matrixSettings>
