import { z } from 'zod'
import { roles } from './roles.ts'
import { isWithoutPassword, path, variableName, whole } from './values.ts'

export { type Role, roles } from './roles.ts'

const name = z
  .string()
  .regex(
    /^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,63}$/u,
    'must be 1 to 64 letters, digits, spaces, ".", "_", "@" or "-"',
  )

/** As `hatchway password` makes it; see api/access/password.ts. */
const passwordHash = z
  .string()
  .regex(
    /^scrypt\$\d{1,2}\$\d{1,2}\$\d{1,2}\$[A-Za-z0-9_-]{22,}\$[A-Za-z0-9_-]{43,}$/,
    'must be made by `hatchway password`',
  )

const user = z.strictObject({ name, role: z.enum(roles), passwordHash })

const tls = z.strictObject({
  cert: path
    .optional()
    .describe('The file with the certificate, and those it was signed with, in PEM.')
    .meta({ allowed: 'an absolute path', otherwise: 'no TLS' }),
  key: path
    .optional()
    .describe('The file with its key, in PEM.')
    .meta({ allowed: 'an absolute path', otherwise: 'no TLS' }),
})

const oidc = z.strictObject({
  issuer: z
    .url({ protocol: /^https?$/ })
    .refine(isWithoutPassword, 'must not hold a user or a password')
    .optional()
    .describe('The OpenID Connect provider that people sign in with.')
    .meta({ allowed: 'an https address', otherwise: 'none' }),
  clientId: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('What the provider knows this host as.')
    .meta({ allowed: 'a text', otherwise: 'none' }),
  clientSecretVariable: variableName
    .optional()
    .describe('The variable of the host’s environment that holds the client’s secret.')
    .meta({ allowed: 'the name of a variable', otherwise: 'a client without a secret' }),
  scope: z
    .string()
    .regex(/^[\x21-\x7e]+( [\x21-\x7e]+)*$/)
    .default('openid email')
    .describe('What the provider is asked for.')
    .meta({ allowed: 'words with spaces between them' }),
  claim: z
    .string()
    .regex(/^[\w.:/-]{1,128}$/)
    .default('email')
    .describe('The claim that roles go by: a text or a list. An e-mail address counts if it is verified.')
    .meta({ allowed: 'the name of a claim' }),
  roles: z
    .partialRecord(z.enum(roles), z.array(z.string().min(1).max(256)))
    .default({})
    .describe('Values of the claim, by role; `*` is anybody the provider knows. Not in the environment.')
    .meta({ allowed: 'an object of lists by role', otherwise: 'nobody' }),
})

/** Who may look at this host from a browser, from where, and what they may do there; see docs/access.md. */
export const webSchema = z.strictObject({
  enabled: z.enum(['yes', 'no']).default('yes').describe('Whether the console is served to browsers.'),
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]{1,253}$/)
    .default('127.0.0.1')
    .describe('The address to listen at. Any but this machine’s own needs TLS and people who can sign in.')
    .meta({ allowed: 'an address of this machine' }),
  port: whole(0, 65_535).default(7717).describe('The port to listen at. 0: any free one.'),
  url: z
    .url({ protocol: /^https?$/ })
    .refine(text => URL.canParse(text) && `${new URL(text).origin}/` === new URL(text).href)
    .optional()
    .describe(
      'The address people open, where it is another: the name of the certificate, or that of a proxy.',
    )
    .meta({ allowed: 'an http or https address without a path', otherwise: 'made of host and port' }),
  insecure: z
    .enum(['yes', 'no'])
    .default('no')
    .describe('`yes`: listen at other addresses without TLS. Only behind a proxy that has it.'),
  connections: whole(16, 100_000)
    .default(512)
    .describe(
      'Open connections of all browsers and webhooks. Over it, the one that is idle longest is closed.',
    ),
  connectionsPerAddress: whole(8, 100_000)
    .default(128)
    .describe('The same for one address. Behind a proxy, all people share one.'),
  tls: tls.prefault({}),
  users: z
    .array(user)
    .default([])
    .describe('People: `{ name, role, passwordHash }`, made by `hatchway password`. Not in the environment.')
    .meta({ allowed: 'a list of people', otherwise: 'none but whoever has the link' }),
  oidc: oidc.prefault({}),
  metrics: z
    .enum(['yes', 'no'])
    .default('no')
    .describe('Whether `/metrics` is served here without signing in. On the daemon’s socket it always is.'),
})
export type WebSettings = z.output<typeof webSchema>

export const isLoopback = (host: string) =>
  host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)

/** What is wrong with it as a whole, in words that say what to do; empty: nothing. */
export function problemsOf({ enabled, host, insecure, tls, users, oidc }: WebSettings): string[] {
  const problems: string[] = []
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    problems.push('web.tls needs both cert and key.')
  }
  if ((oidc.issuer === undefined) !== (oidc.clientId === undefined)) {
    problems.push('web.oidc needs both issuer and clientId.')
  }
  const names = users.map(user => user.name.toLowerCase())
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) problems.push(`web.users names ${JSON.stringify(twice)} twice.`)
  if (isLoopback(host)) return problems
  if (tls.cert === undefined && insecure !== 'yes') {
    problems.push(
      `web.host is ${host}, which others can reach: set web.tls.cert and web.tls.key, or, behind a proxy that has TLS, web.insecure to yes.`,
    )
  }
  if (enabled === 'yes' && users.length === 0 && oidc.issuer === undefined) {
    problems.push(
      `web.host is ${host}, which others can reach: name people in web.users (hatchway password makes their entries), or a provider in web.oidc.`,
    )
  }
  return problems
}
