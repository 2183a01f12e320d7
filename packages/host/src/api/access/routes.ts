import { refusal } from '@hatchway/protocol'
import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context as Request } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { WebSettings } from '../../config/web.ts'
import { meAnswer, sessionsAnswer, waysAnswer, webSession } from '../answers.ts'
import { ApiError } from '../failure.ts'
import { notFound, type Route, routesOf } from '../route.ts'
import { type Access, type Entry, idleMs, type Visitor } from './access.ts'
import type { Attempts } from './attempts.ts'
import { attemptMs, type Oidc } from './oidc.ts'
import { signedInPage } from './pages.ts'
import { isPassword, nobodysPassword } from './password.ts'
import type { Site } from './site.ts'

/** What routes about who is let in need to be answered. */
export interface AccessContext {
  access: Access
  attempts: Attempts
  oidc: Oidc | undefined
  web: Pick<WebSettings, 'users'>
  site: Site
  log: Logger
}

const route = routesOf<AccessContext>('access')

const loginRequest = z.strictObject({
  name: z.string().min(1).max(64),
  password: z.string().min(1).max(1024),
})
const nothingAnswer = z.object({})

/** Signing in and out, and seeing who is in. Only browsers need it: the socket is its owner's. */
export const accessRoutes: readonly Route<AccessContext>[] = [
  route.get('/me', {
    summary: 'Who asks, what they may do, and what their changes must bring along',
    role: 'viewer',
    answer: meAnswer,
    handle({ access, site }, { request }) {
      const visitor = visitorOf({ access, site }, request)
      // The cookie lives as long as the session, which goes on by being used.
      giveCookie(site, request, getCookie(request, site.cookieName(request)) ?? '')
      return meOf(visitor)
    },
  }),
  route.get('/login', {
    summary: 'The ways to sign in',
    role: 'anyone',
    answer: waysAnswer,
    handle: ({ web, oidc }) => waysOf(web, oidc),
  }),
  route.post('/login', {
    summary: 'Sign in with a name and a password; after a few that were wrong each takes longer',
    role: 'anyone',
    body: loginRequest,
    answer: meAnswer,
    async handle(context, { body: { name, password }, request }) {
      const { attempts, web, log } = context
      const address = addressOf(request)
      const waitMs = attempts.begin(address, name)
      if (waitMs > 0) {
        const seconds = Math.ceil(waitMs / 1000)
        throw new ApiError(
          refusal('quota_exceeded', `Too many attempts. Try again in ${seconds} s.`),
          undefined,
          seconds,
        )
      }
      const user = web.users.find(known => known.name.toLowerCase() === name.toLowerCase())
      const isRight = await inTurn(() => isPassword(password, user?.passwordHash ?? nobodysPassword))
      if (!user || !isRight) {
        log.warn({ address }, 'somebody could not sign in')
        throw new ApiError(refusal('forbidden', 'The name or the password is wrong.'), 401)
      }
      attempts.right(address, name)
      return meOf(enter(context, request, { way: 'password', name: user.name }))
    },
  }),
  route.get('/oidc/login', {
    summary: 'Sends the browser to the OpenID Connect provider',
    role: 'anyone',
    answer: z.string(),
    gives: 'text/html',
    status: 302,
    async handle({ oidc, site }, { request }) {
      const { key, url } = await offered(oidc).begin(`${site.originOf(request)}/api/oidc/callback`)
      // Lax, as the provider's page sends the browser back.
      setCookie(request, attemptCookie(site, request), key, {
        ...site.cookie,
        sameSite: 'Lax',
        maxAge: attemptMs / 1000,
      })
      return request.redirect(url, 302)
    },
  }),
  route.get('/oidc/callback', {
    summary: 'Where the OpenID Connect provider sends the browser back to',
    role: 'anyone',
    query: z.object({
      code: z.string().max(4096).optional(),
      state: z.string().max(4096).optional(),
      error: z.string().max(4096).optional(),
    }),
    answer: z.string(),
    gives: 'text/html',
    async handle(context, { request }) {
      const { oidc, site } = context
      const name = attemptCookie(site, request)
      const key = getCookie(request, name) ?? ''
      deleteCookie(request, name, site.cookie)
      const who = await offered(oidc).finish(key, request.req.url)
      enter(context, request, { way: 'oidc', ...who })
      return request.html(signedInPage)
    },
  }),
  route.post('/logout', {
    summary: 'Sign out',
    role: 'viewer',
    answer: nothingAnswer,
    handle({ access, site }, { request }) {
      access.revoke(visitorOf({ access, site }, request).sessionId)
      deleteCookie(request, site.cookieName(request), site.cookie)
      return {}
    },
  }),
  route.get('/sessions', {
    summary: 'Browsers that are let in: all of them for an admin, their own for others',
    role: 'viewer',
    answer: sessionsAnswer,
    handle({ access, site }, { request, caller }) {
      const visitor = visitorOf({ access, site }, request)
      const all = access.list()
      const own = all.find(({ session }) => session.id === visitor.sessionId)?.session
      return all
        .filter(({ session }) => caller.role === 'admin' || isSamePerson(session, own))
        .map(({ session, role }) => ({
          ...webSession.of(session),
          role,
          current: session.id === visitor.sessionId,
        }))
    },
  }),
  route.delete('/sessions/:id', {
    summary: 'Put a browser out',
    role: 'admin',
    params: z.object({ id: z.string().min(1).max(64) }),
    answer: nothingAnswer,
    handle({ access }, { params }) {
      if (!access.revoke(params.id)) throw notFound('There is no session with this id.')
      return {}
    },
  }),
]

const isSamePerson = (a: Pick<Entry, 'way' | 'name'>, b: Pick<Entry, 'way' | 'name'> | undefined) =>
  a.way === b?.way && a.name === b.name

const meOf = ({ name, role, csrf }: Visitor) => ({ name, role, csrf })

export const waysOf = (web: Pick<WebSettings, 'users'>, oidc: Oidc | undefined) => ({
  password: web.users.length > 0,
  oidc: oidc ? '/api/oidc/login' : null,
})

const offered = (oidc: Oidc | undefined): Oidc => {
  if (oidc) return oidc
  throw new ApiError(refusal('unavailable', 'No OpenID Connect provider is configured.'))
}

const attemptCookie = (site: Site, request: Request) => `${site.cookieName(request)}-oidc`

/** Who the browser is; only strangers have no answer. */
export function visitorOf(
  { access, site }: Pick<AccessContext, 'access' | 'site'>,
  request: Request,
): Visitor {
  const visitor = access.visitor(getCookie(request, site.cookieName(request)) ?? '')
  if (visitor) return visitor
  throw new ApiError(refusal('forbidden', 'Sign in, or run on the host: npx hatchway open'), 401)
}

/** Lets the browser in, as somebody new: whoever knew its cookie before does not know this one. */
export function enter(
  { access, site, log }: Pick<AccessContext, 'access' | 'site' | 'log'>,
  request: Request,
  entry: Entry,
): Visitor {
  const before = access.visitor(getCookie(request, site.cookieName(request)) ?? '')
  if (before) access.revoke(before.sessionId)
  const address = addressOf(request)
  const cookie = access.enter(entry, { address, browser: request.req.header('user-agent') ?? '' })
  giveCookie(site, request, cookie)
  const visitor = access.visitor(cookie)
  if (!visitor) throw new Error('a session that was just made is not known')
  log.info({ name: visitor.name, role: visitor.role, way: entry.way, address }, 'somebody signed in')
  return visitor
}

const giveCookie = (site: Site, request: Request, cookie: string) =>
  setCookie(request, site.cookieName(request), cookie, {
    ...site.cookie,
    sameSite: 'Strict',
    maxAge: idleMs / 1000,
  })

const addressOf = (request: Request): string => getConnInfo(request).remote.address ?? ''

const passwordsAtOnce = 2
const passwordsWaiting = 20
const waiting: (() => void)[] = []
let running = 0

/** Each check of a password takes a processor and 32 MiB for a while: strangers must not make it many. */
async function inTurn<T>(check: () => Promise<T>): Promise<T> {
  if (running >= passwordsAtOnce) {
    if (waiting.length >= passwordsWaiting) {
      throw new ApiError(
        refusal('quota_exceeded', 'Too many people sign in. Try again in a moment.'),
        undefined,
        5,
      )
    }
    await new Promise<void>(resolve => waiting.push(resolve))
  }
  running++
  try {
    return await check()
  } finally {
    running--
    waiting.shift()?.()
  }
}
