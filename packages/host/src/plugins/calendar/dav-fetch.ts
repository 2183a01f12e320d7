import { isIP } from 'node:net'
import { problemOfFailure, problemOfStatus, ServerProblem } from './problems.ts'

export interface DavFetchOptions {
  /** what the account is called */
  account: string
  url: string
  username: string
  password: string
  signal: AbortSignal
  /** how long one request may take, and how much may come back */
  timeoutMs?: number
  answerBytes?: number
}

const mostRedirects = 5

/**
 * `fetch` for one account and one call. Every answer that is not a success is thrown as what it means; the name and
 * password go to the account's own server and to nobody it points to; an answer is never larger than may be.
 */
export function createDavFetch(options: DavFetchOptions): typeof fetch {
  const { account, signal, timeoutMs = 30_000, answerBytes = 8 * 1_048_576 } = options
  const home = new URL(options.url)
  const authorization = `Basic ${Buffer.from(`${options.username}:${options.password}`).toString('base64')}`

  const once = async (url: URL, init: RequestInit): Promise<Response> => {
    if (!isOfServer(url, home)) {
      throw new ServerProblem(
        'service_failed',
        `The server of the calendar account “${account}” points to another one. The operator has to look at its address.`,
      )
    }
    const headers = new Headers(init.headers)
    headers.set('authorization', authorization)
    headers.set('user-agent', 'Hatchway')
    const until = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    try {
      const response = await fetch(url, { ...init, headers, redirect: 'manual', signal: until })
      return await bounded(response, answerBytes, account)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw error instanceof ServerProblem ? error : problemOfFailure(account, error)
    }
  }

  return async (input, init = {}) => {
    let url = new URL(input instanceof Request ? input.url : input)
    for (let count = 0; count <= mostRedirects; count++) {
      const response = await once(url, init)
      const location = response.headers.get('location')
      const isRedirect = response.status >= 300 && response.status < 400 && location !== null
      if (isRedirect && init.redirect === 'manual') return response
      if (!isRedirect) {
        if (response.ok) return response
        throw problemOfStatus(account, response.status)
      }
      if (!URL.canParse(location, url.href)) break
      url = new URL(location, url)
    }
    throw new ServerProblem(
      'service_failed',
      `The server of the calendar account “${account}” sends from one address to the next. The operator has to look at its address.`,
    )
  }
}

/** The same machine, or a sibling in the same domain as some providers have for each user; never less protected. */
export function isOfServer(url: URL, home: URL): boolean {
  if (url.protocol !== home.protocol && url.protocol !== 'https:') return false
  if (url.username !== '' || url.password !== '') return false
  if (url.port !== home.port) return false
  if (url.hostname === home.hostname) return true
  const name = home.hostname.replace(/^\[|\]$/g, '')
  const domain = name.split('.').slice(1).join('.')
  return isIP(name) === 0 && domain.includes('.') && url.hostname.endsWith(`.${domain}`)
}

async function bounded(response: Response, limit: number, account: string): Promise<Response> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > limit) {
      throw new ServerProblem(
        'answer_too_large',
        `The calendar account “${account}” has more to tell than can be taken at once. Ask for fewer days.`,
      )
    }
    chunks.push(chunk)
  }
  const { status, headers } = response
  const mayHaveBody = status >= 200 && ![204, 205, 304].includes(status)
  return new Response(mayHaveBody ? Buffer.concat(chunks) : null, { status, headers })
}
