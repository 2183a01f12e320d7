import { z } from 'zod'

const words = (given: unknown) => (typeof given === 'string' ? given.split(/[\s,]+/).filter(Boolean) : given)
const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host)

export const ircSettings = z
  .strictObject({
    server: z
      .string()
      .trim()
      .regex(/^[\w.:-]+$/, 'is not a server. It looks like irc.example.org.'),
    port: z.coerce.number().int().min(1).max(65_535).default(6697),
    tls: z.stringbool().or(z.boolean()).default(true),
    nickname: z
      .string()
      .trim()
      .regex(/^[A-Za-z[\]\\`_^{|}][\w[\]\\`^{|}-]{0,29}$/, 'is not a nickname. It looks like hatch.'),
    /** of the network's services, by which the assistant signs in; empty: it does not */
    account: z.string().trim().default(''),
    password: z.string().default(''),
    /** a text has them one after another */
    channels: z
      .preprocess(
        words,
        z.array(z.string().regex(/^[#&][^\s,:]{1,63}$/, 'is not a channel. It looks like #friends.')),
      )
      .default([]),
    /** people without an account are heard, too, by a nickname that anybody can take */
    nicknames: z.stringbool().or(z.boolean()).default(false),
    /** in seconds; servers end connections that write faster */
    pause: z.coerce.number().min(0).default(2),
  })
  .refine(({ tls, server }) => tls || isLoopback(server), {
    path: ['tls'],
    error: 'may be off only for a server on this machine.',
  })
export type IrcSettings = z.output<typeof ircSettings>
