import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Role, WebSettings } from '../../config/web.ts'
import type { WebSessionRow, WebSessionStore } from '../../store/types.ts'
import type { WebToken } from '../web-token.ts'

/**
 * Browsers that are let in, and what they may do. A browser keeps a random text in its cookie, the host a hash of it;
 * neither says who it is or what it may do, which is looked up at every use (promise 2): whoever is taken out of the
 * configuration, or gets another password there, is out, and so is everybody who came by the link once its token is
 * another.
 */
export interface Access {
  /** what the cookie of a new session says */
  enter(entry: Entry, from: { address: string; browser: string }): string
  visitor(cookie: string): Visitor | undefined
  list(): { session: WebSessionRow; role: Role }[]
  /** whether there was one; its event streams end */
  revoke(id: string): boolean
  /** ends with the session */
  until(id: string): AbortSignal
}

export interface Entry {
  way: WebSessionRow['way']
  name: string
  claims?: readonly string[]
}

export interface Visitor {
  sessionId: string
  way: WebSessionRow['way']
  name: string
  role: Role
  /** what a change must bring along: whoever cannot read the page's answers does not know it */
  csrf: string
}

export const idleMs = 30 * 86_400_000
/** being seen is written down this often at the most */
const seenEveryMs = 300_000
const cookieShape = /^[A-Za-z0-9_-]{43}$/

export function createAccess(options: {
  web: Pick<WebSettings, 'users' | 'oidc'>
  store: WebSessionStore
  token: WebToken
  now(): number
}): Access {
  const { web, store, token, now } = options
  const ending = new Map<string, AbortController>()

  const credentialOf = ({ way, name }: Pick<Entry, 'way' | 'name'>): string | undefined => {
    if (way === 'link') return digest(`link ${token.token}`)
    if (way === 'oidc') {
      return web.oidc.issuer && digest(`oidc ${web.oidc.issuer} ${web.oidc.clientId ?? ''}`)
    }
    const user = web.users.find(known => known.name === name)
    return user && digest(`password ${user.passwordHash}`)
  }
  const roleOf = (session: WebSessionRow): Role | undefined => {
    if (credentialOf(session) !== session.credential) return undefined
    if (session.way === 'link') return 'admin'
    if (session.way === 'oidc') return roleByClaims(web.oidc, session.claims)
    return web.users.find(({ name }) => name === session.name)?.role
  }

  return {
    enter({ way, name, claims = [] }, { address, browser }) {
      const cookie = randomBytes(32).toString('base64url')
      const credential = credentialOf({ way, name })
      if (credential === undefined) throw new Error(`nobody is let in by ${way} as ${name}`)
      store.add({
        id: randomBytes(9).toString('base64url'),
        idHash: digest(cookie),
        way,
        name,
        credential,
        claims: [...claims],
        address: address.slice(0, 64),
        browser: browser.slice(0, 256).toWellFormed(),
        createdAt: now(),
        seenAt: now(),
        expiresAt: now() + idleMs,
      })
      return cookie
    },
    visitor(cookie) {
      const session = cookieShape.test(cookie) ? store.byHash(digest(cookie)) : undefined
      if (!session || session.expiresAt <= now()) return undefined
      const role = roleOf(session)
      if (role === undefined) return undefined
      if (now() - session.seenAt >= seenEveryMs) store.seen(session.id, now(), now() + idleMs)
      const { id: sessionId, way, name } = session
      return { sessionId, way, name, role, csrf: csrfFor(cookie) }
    },
    list: () =>
      store.list(now()).flatMap(session => {
        const role = roleOf(session)
        return role === undefined ? [] : [{ session, role }]
      }),
    revoke(id) {
      const existed = store.remove(id)
      ending.get(id)?.abort()
      ending.delete(id)
      return existed
    },
    until(id) {
      const known = ending.get(id) ?? new AbortController()
      ending.set(id, known)
      return known.signal
    },
  }
}

/** The highest role that one of the values has; undefined: none. */
export function roleByClaims(
  { roles }: Pick<WebSettings['oidc'], 'roles'>,
  values: readonly string[],
): Role | undefined {
  const has = (role: Role) => roles[role]?.some(value => value === '*' || values.includes(value)) ?? false
  return (['admin', 'approver', 'viewer'] as const).find(has)
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url')

const csrfFor = (cookie: string) => createHmac('sha256', cookie).update('hatchway csrf').digest('base64url')

/** In the same time whatever is given. */
export const isSame = (a: string, b: string): boolean =>
  timingSafeEqual(createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest())
