import { z } from 'zod'

/** The client-server API of a homeserver. Whatever it rejects with says nothing of the password or the token. */
export interface Client {
  /** what the server answers, as the schema has it; each part of the path is escaped */
  ask<T>(
    schema: z.ZodType<T>,
    method: 'GET' | 'POST' | 'PUT',
    path: readonly string[],
    more?: Asked,
  ): Promise<T>
  /** the address of what was uploaded: mxc://… */
  upload(content: Uint8Array, type: string, name: string | undefined): Promise<string>
  download(uri: string): AsyncIterable<Uint8Array>
}

interface Asked {
  body?: unknown
  query?: Readonly<Record<string, string>>
  signal?: AbortSignal
}

/** The homeserver has understood, and says no. */
export class MatrixRefusal extends Error {
  override name = 'MatrixRefusal'
  readonly status: number
  readonly code: string
  readonly retryAfterMs: number | undefined
  /** the session is over, but its device and its keys may be used again */
  readonly isSoft: boolean
  /** of a request that has to be confirmed with the password */
  readonly confirmation: string | undefined
  constructor(status: number, { errcode, error, ...more }: Refused, retryAfterMs?: number) {
    super(explained(status, errcode, error))
    this.status = status
    this.code = errcode
    this.retryAfterMs = status === 429 ? (more.retry_after_ms ?? retryAfterMs ?? 1000) : undefined
    this.isSoft = more.soft_logout
    this.confirmation = more.flows ? more.session : undefined
  }

  /** Neither asking again nor waiting would change it. */
  get isFinal(): boolean {
    return [400, 403, 404, 413].includes(this.status)
  }
}

const refusedSchema = z.object({
  errcode: z.string().catch('M_UNKNOWN'),
  error: z.string().catch(''),
  retry_after_ms: z.number().positive().optional().catch(undefined),
  soft_logout: z.boolean().catch(false),
  session: z.string().optional().catch(undefined),
  flows: z.array(z.unknown()).optional().catch(undefined),
})
type Refused = z.output<typeof refusedSchema>

function explained(status: number, code: string, error: string): string {
  const said = `${code}${error === '' ? '' : `: ${error}`}`
  if (code === 'M_UNKNOWN_TOKEN')
    return 'The homeserver has ended this session. Run: npx hatchway channels add matrix'
  if (code === 'M_USER_DEACTIVATED')
    return 'The account is deactivated. Use another: npx hatchway channels add matrix'
  if (status === 403) return `Matrix refused it (${said}). Invite the assistant to the room again.`
  if (status >= 500) return `The homeserver has a problem (${status} ${said}).`
  return `Matrix refused it (${said}).`
}

/** longer than the server holds a request back */
const askMs = 90_000
const transferMs = 300_000

export function createClient(options: {
  server: string
  /** what must never be in a message of ours */
  secrets: readonly string[]
  token?: string
  /** aborted: nothing more is asked */
  signal?: AbortSignal
}): Client {
  const secrets = [...options.secrets, options.token ?? ''].filter(Boolean)
  const withoutSecrets = (text: string) =>
    secrets.reduce((safe, one) => safe.replaceAll(one, '<secret>'), text)

  const request = async (
    url: URL,
    init: RequestInit,
    ms: number,
    signal?: AbortSignal,
  ): Promise<Response> => {
    const signals = [AbortSignal.timeout(ms), options.signal, signal].filter(one => one !== undefined)
    const headers = { ...(options.token && { authorization: `Bearer ${options.token}` }), ...init.headers }
    let response: Response
    try {
      response = await fetch(url, { ...init, headers, signal: AbortSignal.any(signals) })
    } catch (error) {
      throw unreached(error, withoutSecrets)
    }
    if (response.ok) return response
    const answer = refusedSchema.parse(objectIn(await response.text().catch(() => '')))
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    throw new MatrixRefusal(
      response.status,
      { ...answer, error: withoutSecrets(answer.error) },
      seconds > 0 ? seconds * 1000 : undefined,
    )
  }
  const at = (path: readonly string[], query: Readonly<Record<string, string>> = {}) => {
    const url = new URL(`${options.server}/_matrix/${path.map(encodeURIComponent).join('/')}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url
  }

  return {
    async ask(schema, method, path, { body, query, signal } = {}) {
      const init = {
        method,
        ...(body !== undefined && {
          body: typeof body === 'string' ? body : JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      }
      const response = await request(at(['client', ...path], query), init, askMs, signal)
      try {
        return schema.parse(await response.json())
      } catch (error) {
        if (error instanceof z.ZodError || error instanceof SyntaxError)
          throw new Error(`The homeserver answered ${path.join('/')} in a way that Matrix does not have.`)
        throw unreached(error, withoutSecrets)
      }
    },
    async upload(content, type, name) {
      const url = at(['media', 'v3', 'upload'], name === undefined ? {} : { filename: name })
      const init = { method: 'POST', body: new Uint8Array(content), headers: { 'content-type': type } }
      const answer = objectIn(await (await request(url, init, transferMs)).text())
      return z.object({ content_uri: z.string() }).parse(answer).content_uri
    },
    async *download(uri) {
      const [, server = '', id = ''] = /^mxc:\/\/([^/]+)\/([^/]+)$/.exec(uri) ?? []
      if (id === '') throw new MatrixRefusal(404, refusedSchema.parse({ error: 'the file has no address' }))
      const url = at(['client', 'v1', 'media', 'download', server, id])
      const { body } = await request(url, {}, transferMs)
      try {
        if (body) yield* body
      } catch (error) {
        throw unreached(error, withoutSecrets)
      }
    },
  }
}

function objectIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

function unreached(error: unknown, withoutSecrets: (text: string) => string): Error {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = inner instanceof Error ? inner.message || inner.name : String(inner)
  return new Error(`The homeserver cannot be reached: ${withoutSecrets(reason)}`)
}

const wellKnownSchema = z.object({ 'm.homeserver': z.object({ base_url: z.url({ protocol: /^https?$/ }) }) })

/** Where the homeserver is: a domain may say that it is elsewhere. */
export async function findServer(given: string, signal: AbortSignal): Promise<string> {
  let response: Response
  try {
    response = await fetch(`${given}/.well-known/matrix/client`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(askMs)]),
    })
  } catch (error) {
    throw unreached(error, text => text)
  }
  const found = wellKnownSchema.safeParse(response.ok ? objectIn(await response.text()) : {})
  if (!found.success) return given
  const server = found.data['m.homeserver'].base_url.replace(/\/+$/, '')
  if (given.startsWith('https:') && !server.startsWith('https:'))
    throw new Error(`${given} names a homeserver without encryption (${server}). Ask whoever runs it.`)
  return server
}
