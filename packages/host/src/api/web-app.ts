import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { refusal } from '@hatchway/protocol'
import { type Context, Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { Logger } from 'pino'
import type { Chats } from '../channels/chats.ts'
import { signatureHeader, timestampHeader } from '../channels/signature.ts'
import type { Config } from '../config.ts'
import type { Store } from '../store/types.ts'
import { createChatRoutes } from './chat.ts'
import { ApiError } from './failure.ts'
import { answerFailures, bytesOf } from './requests.ts'
import type { WebToken } from './web-token.ts'

/**
 * What browsers get. Anything that runs on this machine, and any page of any site, can send requests here, so:
 *
 *   the name in `Host` must be this machine's own    a foreign name that resolves to it is an attack (DNS rebinding)
 *   `Origin`, where there is one, must be ours       another page must not act for the person (CSRF)
 *   a change must come from our own page             and say so; a form of another page cannot
 *   the cookie must be right                         it is given for the token, and to our own page only (SameSite)
 *
 * Webhooks are other machines' programs: they show a signature in stead of all that.
 */
export interface WebAppOptions {
  store: Store
  config: Config
  chats: Chats
  log: Logger
  warning?: () => string | undefined
  directory: string
  /** whether there is a page, or only webhooks */
  isServed: boolean
  token: WebToken
  signal: AbortSignal
}

const files: Readonly<Record<string, { file: string; type: string }>> = {
  '/approval.js': { file: 'approval.js', type: 'text/javascript; charset=utf-8' },
  '/card.js': { file: 'card.js', type: 'text/javascript; charset=utf-8' },
  '/chat.css': { file: 'chat.css', type: 'text/css; charset=utf-8' },
  '/chat.js': { file: 'chat.js', type: 'text/javascript; charset=utf-8' },
  '/parts.js': { file: 'parts.js', type: 'text/javascript; charset=utf-8' },
  '/icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
}

/** Nothing an agent writes can become markup or script: there is no inline script, and no text is ever parsed as HTML. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
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

const year = 31_536_000
const ownNames = new Set(['127.0.0.1', 'localhost', '[::1]'])

export function createWebApp(options: WebAppOptions): Hono {
  const { chats, store, config, log, token, signal } = options
  const app = new Hono()
  answerFailures(app, error => log.error({ err: error }, 'the web server failed'))

  app.use(async (c, next) => {
    await next()
    for (const [name, value] of Object.entries(headers)) c.header(name, value)
  })

  app.post('/webhook/:name', async c => {
    const accepted = await chats.webhook.accept({
      name: c.req.param('name'),
      timestamp: c.req.header(timestampHeader),
      signature: c.req.header(signatureHeader),
      body: await bytesOf(c.req.raw),
    })
    if (!accepted.ok) throw new ApiError(accepted.error)
    return c.json({ repeated: accepted.repeated }, accepted.repeated ? 200 : 202)
  })

  if (!options.isServed) return app

  app.use(async (c, next) => {
    checkNames(c)
    await next()
  })

  const isKnown = (c: Context) => token.isCookie(getCookie(c, cookieName(c)) ?? '')
  app.get('/', c => {
    const given = c.req.query('token')
    if (given !== undefined) {
      if (!token.isToken(given)) return c.html(stranger, 401)
      setCookie(c, cookieName(c), token.cookie, {
        httpOnly: true,
        sameSite: 'Strict',
        path: '/',
        maxAge: year,
      })
      // Not a redirect: a browser that came here from elsewhere would leave the new cookie out once more.
      return c.html(welcome)
    }
    if (!isKnown(c)) return c.html(stranger, 401)
    return c.body(readFileSync(join(options.directory, 'index.html')), 200, {
      'content-type': 'text/html; charset=utf-8',
    })
  })
  for (const [path, { file, type }] of Object.entries(files)) {
    app.get(path, c => c.body(readFileSync(join(options.directory, file)), 200, { 'content-type': type }))
  }

  app.use('/api/*', async (c, next) => {
    if (!isKnown(c)) {
      throw new ApiError(refusal('forbidden', 'Open the link that the daemon printed when it started.'))
    }
    if (c.req.method !== 'GET' && !/^application\/json\b/i.test(c.req.header('content-type') ?? '')) {
      throw new ApiError(refusal('forbidden', 'A change must be sent as application/json.'))
    }
    await next()
  })
  const { warning } = options
  app.route('/api', createChatRoutes({ chats, store, config, signal, ...(warning && { warning }) }))
  return app
}

function checkNames(c: Context): void {
  const host = c.req.header('host') ?? ''
  if (!ownNames.has(host.replace(/:\d+$/, '').toLowerCase())) {
    throw new ApiError(refusal('forbidden', 'This server answers to 127.0.0.1 and localhost only.'))
  }
  const origin = c.req.header('origin')
  const site = c.req.header('sec-fetch-site')
  const isForeign = origin !== undefined && origin !== `http://${host}`
  const isChange = c.req.method !== 'GET' && c.req.method !== 'HEAD'
  if (isForeign || (isChange && origin === undefined && site !== 'same-origin')) {
    throw new ApiError(refusal('forbidden', 'Only the page of this server may do that.'))
  }
}

/** Cookies do not know ports: two installations on one machine must not sign each other out. */
const cookieName = (c: Context) => `hatchway-${/:(\d+)$/.exec(c.req.header('host') ?? '')?.[1] ?? '80'}`

const page = (title: string, head: string, text: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="/chat.css">
<link rel="icon" href="/icon.svg">${head}
</head>
<body class="plain"><main><h1>${title}</h1><p>${text}</p></main></body>
</html>
`

const welcome = page(
  'Hatchway',
  '\n<meta http-equiv="refresh" content="0; url=/">',
  '<a href="/">To the chat</a>',
)
const stranger = page(
  'Hatchway does not know this browser',
  '',
  'Open the link that <code>hatchway up</code> printed when it started. It ends in <code>?token=…</code>',
)
