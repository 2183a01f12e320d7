import type { FetchFunction, WebClient } from '@slack/web-api'

export type WebApi = typeof import('@slack/web-api')

/** The Web API with one token. Whatever it rejects with says nothing of the token. */
export interface SlackApi {
  ask<T>(work: (web: WebClient) => Promise<T>): Promise<T>
  /** the content of a file in Slack; the token goes to no other host */
  download(url: string): AsyncIterable<Uint8Array>
  /** to an address that `files.getUploadURLExternal` gave, which needs no token */
  upload(url: string, content: Buffer): Promise<void>
}

/** Slack has understood, and says no. https://docs.slack.dev/reference/methods lists the codes of each method. */
export class SlackRefusal extends Error {
  override name = 'SlackRefusal'
  readonly code: string
  readonly retryAfterMs: number | undefined
  constructor(code: string, retryAfterMs?: number) {
    super(explained(code, retryAfterMs))
    this.code = code
    this.retryAfterMs = retryAfterMs
  }

  /** Neither asking again nor waiting would change it, and the operator cannot change it soon. */
  get isFinal(): boolean {
    return this.retryAfterMs === undefined && !mayPass.has(this.code)
  }
}

const wrongToken: ReadonlySet<string> = new Set([
  'invalid_auth',
  'not_authed',
  'account_inactive',
  'token_revoked',
  'token_expired',
  'not_allowed_token_type',
])
const mayPass: ReadonlySet<string> = new Set([
  ...wrongToken,
  'missing_scope',
  'ratelimited',
  'rate_limited',
  'message_limit_exceeded',
  'internal_error',
  'fatal_error',
  'request_timeout',
  'service_unavailable',
  'team_added_to_org',
])

function explained(code: string, retryAfterMs: number | undefined): string {
  if (retryAfterMs !== undefined) return `Slack asks to wait ${Math.ceil(retryAfterMs / 1000)} seconds.`
  if (wrongToken.has(code))
    return `Slack does not accept this token (${code}). Copy both tokens again from the app’s pages at api.slack.com/apps.`
  if (code === 'missing_scope')
    return 'The app lacks a permission (missing_scope). Add it on the page OAuth & Permissions, and install the app again.'
  if (code === 'not_in_channel' || code === 'channel_not_found')
    return `Slack refused it (${code}). Invite the app into the channel: /invite @its-name`
  return `Slack refused it (${code}).`
}

/** Longer than a slow line needs for the largest file. */
const transferMs = 300_000
const callMs = 30_000

/** The library logs whole messages and addresses with tickets in them: none of it is kept. */
export const silence = () => {
  const nothing = () => {}
  return {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: nothing,
    setLevel: nothing,
    setName: nothing,
    getLevel: () => 'error' as import('@slack/web-api').LogLevel,
  }
}

/** For the library's own calls: they end with the signal, and nothing is tried twice behind our back. */
export const callOptions = (server: string, signal: AbortSignal) => {
  const fetchUntil: FetchFunction = (url, init = {}) =>
    fetch(url, { ...init, signal: AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])]) })
  return {
    slackApiUrl: server,
    fetch: fetchUntil,
    timeout: callMs,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
  }
}

/** What went wrong, in words that hold no token. */
export function safeError(error: unknown, tokens: readonly string[]): Error {
  if (error instanceof SlackRefusal) return error
  const { code, data, retryAfter, statusCode, original } = detailsOf(error)
  if (code === 'slack_webapi_platform_error' && typeof data?.error === 'string')
    // A page of HTML instead of an answer is given as the code.
    return new SlackRefusal(/^\w{1,64}$/.test(data.error) ? data.error : 'not_an_answer')
  if (code === 'slack_webapi_rate_limited_error' && typeof retryAfter === 'number')
    return new SlackRefusal('ratelimited', retryAfter * 1000)
  if (typeof statusCode === 'number') return new Error(`Slack has a failure of its own (HTTP ${statusCode}).`)
  const inner = original instanceof Error ? original : error
  const cause = inner instanceof Error && inner.cause instanceof Error ? inner.cause : inner
  const reason = cause instanceof Error ? cause.message : String(cause ?? 'the connection was refused')
  return new Error(
    `Slack cannot be reached: ${tokens.reduce((text, token) => text.replaceAll(token, '<token>'), reason)}`,
  )
}

interface Details {
  code?: unknown
  data?: { error?: unknown }
  retryAfter?: unknown
  statusCode?: unknown
  original?: unknown
}
const detailsOf = (error: unknown): Details => (typeof error === 'object' && error !== null ? error : {})

export function createApi(options: {
  library(): Promise<WebApi>
  token: string
  server: string
  /** aborted: nothing more is asked */
  signal: AbortSignal
}): SlackApi {
  const { library, token, server, signal } = options
  let loaded: Promise<WebClient> | undefined
  const load = () => {
    loaded ??= library().then(
      ({ WebClient }) => new WebClient(token, { ...callOptions(server, signal), logger: silence() }),
    )
    return loaded
  }
  const safely = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw safeError(error, [token])
    }
  }
  const soon = () => AbortSignal.any([AbortSignal.timeout(transferMs), signal])

  return {
    ask: work => safely(async () => work(await load())),
    async *download(url) {
      if (!isSlacks(url, server)) throw new SlackRefusal('not_a_file_of_slack')
      const response = await safely(() =>
        fetch(url, { headers: { authorization: `Bearer ${token}` }, redirect: 'manual', signal: soon() }),
      )
      if (response.status >= 500) throw safeError({ statusCode: response.status }, [])
      // Whoever may not read a file is sent to a page to log in.
      if (!response.ok || !response.body) throw new SlackRefusal(`http_${response.status}`)
      try {
        yield* response.body
      } catch (error) {
        throw safeError(error, [token])
      }
    },
    upload: (url, content) =>
      safely(async () => {
        const body = new Uint8Array(content)
        const response = await fetch(url, { method: 'POST', body, redirect: 'error', signal: soon() })
        await response.arrayBuffer()
        if (!response.ok) throw safeError({ statusCode: response.status }, [])
      }),
  }
}

/** Files that people link from elsewhere have addresses elsewhere: nobody there is to see the token. */
function isSlacks(url: string, server: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, hostname, origin } = new URL(url)
  return (
    origin === new URL(server).origin ||
    (protocol === 'https:' && (hostname === 'slack.com' || hostname.endsWith('.slack.com')))
  )
}
