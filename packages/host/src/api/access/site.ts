import { isIP } from 'node:net'
import { refusal } from '@hatchway/protocol'
import type { Context as Request } from 'hono'
import { isLoopback, type WebSettings } from '../../config/web.ts'
import { ApiError } from '../failure.ts'

/**
 * The names this server answers to and the pages that may speak for a person. Anything that runs on this machine, and
 * any page of any site, can send requests here, so:
 *
 *   the name in `Host` must be one of ours          a foreign name that resolves to us is an attack (DNS rebinding)
 *   `Origin`, where there is one, must be ours      another page must not act for the person (CSRF)
 *   a change must come from our own page            and say so; a form of another page cannot
 */
export interface Site {
  /** throws for another name or a foreign page */
  check(request: Request): void
  /** as the browser knows us: https://hatchway.example.org */
  originOf(request: Request): string
  cookieName(request: Request): string
  cookie: { httpOnly: true; path: '/'; secure: boolean }
}

const ownNames = new Set(['127.0.0.1', 'localhost', '[::1]'])

export function createSite({ host: address, url, tls }: Pick<WebSettings, 'host' | 'url' | 'tls'>): Site {
  const outside = url === undefined ? undefined : new URL(url)
  const hasTls = tls.cert !== undefined
  const secure = hasTls || outside?.protocol === 'https:'
  const isOpen = !isLoopback(address)

  const hostOf = (request: Request) => (request.req.header('host') ?? '').toLowerCase()
  const isOurs = (host: string) => {
    const name = host.replace(/:\d+$/, '')
    if (ownNames.has(name) || host === outside?.host || name === address) return true
    // Nobody can have an address resolve to us that is not ours.
    return isOpen && isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0
  }
  const originOf = (request: Request) => {
    const host = hostOf(request)
    return outside && host === outside.host ? outside.origin : `${hasTls ? 'https' : 'http'}://${host}`
  }

  return {
    check(request) {
      if (!isOurs(hostOf(request))) {
        throw new ApiError(
          refusal(
            'forbidden',
            isOpen
              ? 'This server does not answer to this name. Its operator can set web.url.'
              : 'This server answers to 127.0.0.1 and localhost only.',
          ),
        )
      }
      const origin = request.req.header('origin')
      const site = request.req.header('sec-fetch-site')
      const isForeign = origin !== undefined && origin !== originOf(request)
      const isChange = request.req.method !== 'GET' && request.req.method !== 'HEAD'
      if (isForeign || (isChange && origin === undefined && site !== 'same-origin')) {
        throw new ApiError(refusal('forbidden', 'Only the page of this server may do that.'))
      }
    },
    originOf,
    // Cookies do not know ports: two installations on one machine must not sign each other out.
    cookieName: request => {
      const port = /:(\d+)$/.exec(hostOf(request))?.[1] ?? (secure ? '443' : '80')
      return `${secure ? '__Host-' : ''}hatchway-${port}`
    },
    cookie: { httpOnly: true, path: '/', secure },
  }
}
