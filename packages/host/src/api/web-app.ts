import { refusal } from '@hatchway/protocol'
import type { HttpBindings } from '@hono/node-server'
import { Hono, type Context as Request } from 'hono'
import { getCookie } from 'hono/cookie'
import type { Logger } from 'pino'
import type { Chats } from '../chat/chats.ts'
import { type Role, roles } from '../config/web.ts'
import type { Config } from '../config.ts'
import type { Store } from '../store/types.ts'
import { createAccess, isSame, type Visitor } from './access/access.ts'
import { createAttempts } from './access/attempts.ts'
import { createOidc } from './access/oidc.ts'
import { refusedPage, signedInPage, strangerPage } from './access/pages.ts'
import { type AccessContext, accessRoutes, enter, visitorOf, waysOf } from './access/routes.ts'
import { createSite } from './access/site.ts'
import { ApiError, statusFor } from './failure.ts'
import type { Host } from './host.ts'
import { answerFailures } from './requests.ts'
import { type Caller, type Description, mount } from './route.ts'
import { chatRoutes, documentRoutes, healthRoutes, hostRoutes, metricsRoutes } from './routes.ts'
import { createStaticFiles } from './static-files.ts'
import type { WebToken } from './web-token.ts'

/**
 * What browsers get. The site's names and pages are checked first (access/site.ts), then who asks (access/access.ts):
 * each route says which role it needs, and a change has to bring along what only our own page can know.
 *
 * Public routes of plugins are for other machines' programs, which prove to the route who they are in stead of all that.
 */
export interface WebAppOptions {
  store: Store
  config: Config
  chats: Chats
  /** left out: only the chats are served */
  host?: Host | undefined
  log: Logger
  warning?: (() => string | undefined) | undefined
  /** the console's files */
  directory: string
  /** whether there is a page, or only public routes */
  isServed: boolean
  token: WebToken
  signal: AbortSignal
  environment?: NodeJS.ProcessEnv | undefined
  now?: (() => number) | undefined
}

/** Nothing an agent writes can become markup or script: there is no inline script, and no text is ever parsed as HTML. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // What is chosen to be sent is shown before it is.
  "img-src 'self' blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const headers = {
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
}

const heartbeatMs = 15_000
const eventBufferBytes = 4_194_304
/** Event streams of one session: a browser opens six connections at most, whatever it wants. */
const mostStreams = 16
const somebody: Caller = { name: 'somebody', role: 'viewer', isAtHost: false }
const csrfHeader = 'x-hatchway-csrf'

export function createWebApp(options: WebAppOptions): Hono {
  const { chats, store, config, host, log, token, signal, warning } = options
  const { environment = process.env, now = Date.now } = options
  const { web } = config
  const app = new Hono()
  answerFailures(
    app,
    error => log.error({ err: error }, 'the web server failed'),
    // Whoever was sent here by the provider's page reads words, not JSON.
    (c, error) =>
      c.req.path.startsWith('/api/oidc/') ? c.html(refusedPage(error.message), statusFor(error)) : undefined,
  )

  app.use(async (c, next) => {
    await next()
    // A file that somebody sent has a stricter policy of its own.
    for (const [name, value] of Object.entries(headers)) {
      if (!c.res.headers.has(name)) c.header(name, value)
    }
  })

  for (const { path, routes } of host?.publicRoutes.routes ?? [])
    mount(app, path, routes, undefined, () => somebody)

  const hostContext = host && { host, signal, heartbeatMs, eventBufferBytes }
  // Whoever looks after the host asks under any name, and learns nothing.
  if (hostContext) mount(app, '', healthRoutes, hostContext)
  if (!options.isServed) return app

  const site = createSite(web)
  const context: AccessContext = {
    access: createAccess({ web, store: store.webSessions, token, now }),
    attempts: createAttempts(now),
    oidc: createOidc({ oidc: web.oidc, environment, now }),
    web,
    site,
    log,
  }
  app.use(async (c, next) => {
    site.check(c)
    await next()
  })

  const streams = new Map<string, number>()
  const countStream = (sessionId: string, { outgoing }: HttpBindings) => {
    const open = streams.get(sessionId) ?? 0
    if (open >= mostStreams) {
      const message = `This session has ${mostStreams} event streams open. Close some of its windows.`
      throw new ApiError(refusal('quota_exceeded', message))
    }
    streams.set(sessionId, open + 1)
    outgoing.once('close', () => {
      const left = (streams.get(sessionId) ?? 1) - 1
      if (left === 0) streams.delete(sessionId)
      else streams.set(sessionId, left)
    })
  }
  const callerOf = (request: Request, route: Description): Caller => {
    const isChange = route.method !== 'get'
    if (isChange) checkType(request, route)
    if (route.role === 'anyone') return somebody
    const visitor = visitorOf(context, request)
    if (isChange) checkChange(request, visitor)
    checkRole(visitor, route.role)
    if (isChange) {
      log.info({ name: visitor.name, role: visitor.role, method: route.method, path: route.path }, 'a change')
    }
    if (route.isStream) countStream(visitor.sessionId, request.env as HttpBindings)
    const until = route.isStream ? context.access.until(visitor.sessionId) : undefined
    return { name: visitor.name, role: visitor.role, isAtHost: false, until }
  }
  mount(app, '/api', accessRoutes, context, callerOf)
  mount(app, '/api', documentRoutes, options.host?.routes ?? [], callerOf)
  mount(
    app,
    '/api',
    chatRoutes,
    { chats, store, config, signal, heartbeatMs, eventBufferBytes, warning },
    callerOf,
  )
  if (hostContext) {
    mount(app, '/api/host', hostRoutes, hostContext, callerOf)
    for (const { path, routes } of hostContext.host.routes)
      mount(app, `/api/host${path}`, routes, undefined, callerOf)
    if (web.metrics === 'yes') mount(app, '', metricsRoutes, hostContext, callerOf)
    else app.get('/metrics', c => c.notFound())
  }

  const files = createStaticFiles(options.directory)
  const isKnown = (c: Request) => context.access.visitor(getCookie(c, site.cookieName(c)) ?? '') !== undefined
  app.get('*', c => {
    const { path } = c.req
    if (path === '/api' || path.startsWith('/api/')) return c.notFound()
    const asset = files.asset(path)
    if (asset) return c.body(asset.content, 200, asset.headers)
    if (!files.isPage(path)) return c.notFound()
    const given = path === '/' ? c.req.query('token') : undefined
    if (given !== undefined) {
      if (!token.isToken(given)) return c.html(strangerPage(waysOf(web, context.oidc)), 401)
      const known = context.access.visitor(getCookie(c, site.cookieName(c)) ?? '')
      // Its other windows go on as they are.
      if (known?.way !== 'link') enter(context, c, { way: 'link', name: 'Operator' })
      return c.html(signedInPage)
    }
    if (!isKnown(c)) return c.html(strangerPage(waysOf(web, context.oidc)), 401)
    const page = files.page()
    if (!page) return c.html(refusedPage('The console has not been built yet. Run npm run build.'), 503)
    return c.body(page, 200, { 'content-type': 'text/html; charset=utf-8' })
  })
  return app
}

/** Neither is a type that a form of another page can send. */
function checkType(request: Request, { takes = 'application/json' }: Description): void {
  const given = request.req.header('content-type') ?? ''
  if (given.split(';')[0]?.trim().toLowerCase() === takes) return
  throw new ApiError(refusal('forbidden', `A change must be sent as ${takes}.`))
}

function checkChange(request: Request, visitor: Visitor): void {
  if (isSame(request.req.header(csrfHeader) ?? '', visitor.csrf)) return
  throw new ApiError(
    refusal('forbidden', 'A change must bring along what /api/me says. Load the page again.'),
  )
}

function checkRole(visitor: Visitor, needed: Role): void {
  if (roles.indexOf(visitor.role) >= roles.indexOf(needed)) return
  throw new ApiError(
    refusal('forbidden', `${visitor.name} has the role ${visitor.role}, and this needs ${needed}.`),
  )
}
