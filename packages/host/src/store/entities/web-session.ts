import { z } from 'zod'
import { instant } from './instant.ts'

/** A browser that is let in. What it may do is looked up at every use, not kept here. */
export const webSessionSchema = z.object({
  /** to name it by; not what the cookie says */
  id: z.string(),
  name: z.string(),
  /** the printed link, a password, or an OpenID Connect provider */
  way: z.enum(['link', 'password', 'oidc']),
  address: z.string(),
  browser: z.string(),
  createdAt: instant,
  seenAt: instant.describe('to a few minutes'),
  expiresAt: instant,
  /** of what the cookie says */
  idHash: z.string(),
  /** of what let them in; once that is another, this does not count any more */
  credential: z.string(),
  claims: z.array(z.string()),
})
export type WebSessionRow = z.output<typeof webSessionSchema>
