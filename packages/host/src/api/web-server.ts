import { createServer, isIPv6, type Server, type Socket } from 'node:net'
import type { Logger } from 'pino'
import { layoutOf } from '../base/layout.ts'
import { consoleDirectory } from '../base/parts.ts'
import type { Chats } from '../chat/chats.ts'
import { isLoopback, problemsOf } from '../config/web.ts'
import { type Config, ConfigError, type WebSettings } from '../config.ts'
import type { Store } from '../store/types.ts'
import type { Certificate } from './certificate.ts'
import { createConnections } from './connections.ts'
import type { Host } from './host.ts'
import type { Http } from './http.ts'
import { linkWith, openWebToken } from './web-token.ts'

export interface WebServerOptions {
  store: Store
  config: Config
  chats: Chats
  /** left out: only the chats are served */
  host?: Host
  log: Logger
  /** stays on screen: the sandbox isolates nothing, for one */
  warning?: () => string | undefined
  /** the console's files */
  directory?: string
  environment?: NodeJS.ProcessEnv
  now?(): number
}

export interface WebServer {
  port: number
  /** http://127.0.0.1:7717/ */
  url: string
  /** lets a browser in; undefined where only public routes are served */
  link: string | undefined
  /** nobody has been given the link yet */
  isNew: boolean
  close(): Promise<void>
}

/** ports that are tried in stead of one that is taken, before any free one will do */
const neighbours = 20
/** connections beyond `web.connections` for whoever is at this machine */
const loopbackReserve = 64
const reportEveryMs = 60_000

/** Throws where it must not be served as it is configured: before anything else is started. */
export async function checkWeb({ web }: Pick<Config, 'web'>): Promise<Certificate | undefined> {
  const problems = problemsOf(web)
  if (problems.length > 0) throw new ConfigError(`The console cannot be served.\n  ${problems.join('\n  ')}`)
  const { cert, key } = web.tls
  if (cert === undefined || key === undefined) return undefined
  // Only whoever has a certificate needs TLS.
  const { openCertificate } = await import('./certificate.ts')
  return openCertificate({ cert, key })
}

/**
 * Serves the console to browsers, and the public routes of plugins. undefined where neither is wanted. Whoever opens the
 * address needs the token, a password or a provider's word; other programs' pages get nothing (see web-app.ts).
 */
export async function serveWeb(options: WebServerOptions): Promise<WebServer | undefined> {
  const { config, host, log } = options
  const { web } = config
  const isServed = web.enabled === 'yes'
  if (!isServed && !host?.publicRoutes.needWebServer) return undefined
  const certificate = await checkWeb(config)
  const token = openWebToken(layoutOf(config.data).state)

  // Loaded when the first one knocks, as the API on the socket is.
  let http: Promise<Http> | undefined
  const load = async () => {
    const [{ createHttpFor }, { createWebApp }] = await Promise.all([
      import('./http.ts'),
      import('./web-app.ts'),
    ])
    const directory = options.directory ?? consoleDirectory
    return createHttpFor(
      signal => createWebApp({ ...options, directory, isServed, token, signal }),
      certificate,
      connections,
    )
  }
  const report = createReport(log)
  const connections = createConnections(
    { total: web.connections, perAddress: web.connectionsPerAddress, reserve: loopbackReserve },
    report,
  )
  const take = async (connection: Socket) => {
    if (!connections.admit(connection)) return void connection.destroy()
    http ??= load()
    try {
      ;(await http).take(connection)
    } catch (error) {
      http = undefined
      log.error({ err: error }, 'the web server could not be loaded')
      connection.destroy()
    }
  }
  const server = createServer({ pauseOnConnect: true }, take)
  const port = await listenNear(server, web)
  if (web.port !== 0 && port !== web.port) {
    log.warn({ wanted: web.port, port }, 'the port of the console is taken; another one is used')
  }
  const url =
    web.url === undefined ? `${certificate ? 'https' : 'http'}://${nameOf(web.host)}:${port}/` : web.url
  return {
    port,
    url: url.endsWith('/') ? url : `${url}/`,
    link: isServed ? linkWith(url, token.token) : undefined,
    isNew: token.isNew,
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      await (await http)?.close()
      await closed
    },
  }
}

/** Says now and then that connections were ended to make room. */
function createReport(log: Logger): (address: string) => void {
  let count = 0
  let reportedAt = Number.NEGATIVE_INFINITY
  return address => {
    count++
    if (performance.now() - reportedAt < reportEveryMs) return
    reportedAt = performance.now()
    log.warn(
      { address, count },
      'too many connections: idle ones are closed (web.connections, web.connectionsPerAddress)',
    )
    count = 0
  }
}

/** An address at which all others are listened to is none that can be opened. */
const nameOf = (host: string) => {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return isIPv6(host) ? `[${host}]` : host
}

async function listenNear(server: Server, { host, port: wanted }: WebSettings): Promise<number> {
  // Others have been told the port: only whoever is at this machine finds the console at another one.
  const last = isLoopback(host) ? Math.min(wanted + neighbours, 65_535) : wanted
  for (let port = wanted; port !== 0 && port <= last; port++) {
    if (await listen(server, host, port)) return port
  }
  if (wanted !== 0 && !isLoopback(host)) {
    throw new ConfigError(
      `The console cannot be served: the port ${wanted} of ${host} is taken, or not for us.`,
    )
  }
  if (!(await listen(server, host, 0))) throw new Error('no port is free for the console')
  const found = server.address()
  if (found === null || typeof found === 'string') throw new Error('the console has no port')
  return found.port
}

/** false: the port is taken, or not for us */
const listen = (server: Server, host: string, port: number) =>
  new Promise<boolean>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false)
      else
        reject(new ConfigError(`The console cannot be served at ${host} (${error.code}).`, { cause: error }))
    }
    server.once('error', failed)
    server.listen({ host, port }, () => {
      server.off('error', failed)
      resolve(true)
    })
  })
