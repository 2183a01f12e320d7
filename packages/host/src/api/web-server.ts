import { createServer, type Server, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Chats } from '../channels/chats.ts'
import type { Config } from '../config.ts'
import { layoutOf } from '../layout.ts'
import type { Store } from '../store/types.ts'
import type { Http } from './http.ts'
import { openWebToken } from './web-token.ts'

export interface WebServerOptions {
  store: Store
  config: Config
  chats: Chats
  log: Logger
  /** stays on screen: the sandbox isolates nothing, for one */
  warning?: () => string | undefined
  /** the page's files */
  directory?: string
}

export interface WebServer {
  port: number
  /** http://127.0.0.1:7717/ */
  url: string
  /** lets a browser in; undefined where only webhooks are served */
  link: string | undefined
  /** nobody has been given the link yet */
  isNew: boolean
  close(): Promise<void>
}

const address = '127.0.0.1'
/** ports that are tried in stead of one that is taken, before any free one will do */
const neighbours = 20
const mostConnections = 256
const pageDirectory = fileURLToPath(new URL('../../../web/public/', import.meta.url))

/**
 * Serves the chat to browsers of this machine, and takes messages from webhooks. undefined where neither is wanted.
 * Whoever opens the address needs the token; other programs' pages get nothing (see web-app.ts).
 */
export async function serveWeb(options: WebServerOptions): Promise<WebServer | undefined> {
  const { config, chats, log } = options
  const isServed = config.web.enabled === 'yes'
  if (!isServed && chats.webhook.problem !== undefined) return undefined
  const token = openWebToken(layoutOf(config.data).state)

  // Loaded when the first one knocks, as the API on the socket is.
  let http: Promise<Http> | undefined
  const load = async () => {
    const [{ createHttpFor }, { createWebApp }] = await Promise.all([
      import('./http.ts'),
      import('./web-app.ts'),
    ])
    return createHttpFor(signal =>
      createWebApp({ ...options, directory: options.directory ?? pageDirectory, isServed, token, signal }),
    )
  }
  const take = async (connection: Socket) => {
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
  server.maxConnections = mostConnections
  const port = await listenNear(server, config.web.port)
  if (config.web.port !== 0 && port !== config.web.port) {
    log.warn({ wanted: config.web.port, port }, 'the port of the web chat is taken; another one is used')
  }
  const url = `http://${address}:${port}/`
  return {
    port,
    url,
    link: isServed ? `${url}?token=${token.token}` : undefined,
    isNew: token.isNew,
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      await (await http)?.close()
      await closed
    },
  }
}

async function listenNear(server: Server, wanted: number): Promise<number> {
  const last = Math.min(wanted + neighbours, 65_535)
  for (let port = wanted; port !== 0 && port <= last; port++) {
    if (await listen(server, port)) return port
  }
  if (!(await listen(server, 0))) throw new Error('no port is free for the web chat')
  const found = server.address()
  if (found === null || typeof found === 'string') throw new Error('the web chat has no port')
  return found.port
}

/** false: the port is taken, or not for us */
const listen = (server: Server, port: number) =>
  new Promise<boolean>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false)
      else reject(error)
    }
    server.once('error', failed)
    server.listen({ host: address, port }, () => {
      server.off('error', failed)
      resolve(true)
    })
  })
