import { readFileSync, statSync } from 'node:fs'
import type { RequestListener, Server, ServerOptions } from 'node:http'
import { createServer } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ConfigError } from '../config.ts'

/** TLS with a certificate that is read anew when its files have changed, as they do every few weeks. */
export interface Certificate {
  createServer(options: ServerOptions, listener: RequestListener): Server
  /** before a connection is taken */
  renew(): void
}

const oldest = { minVersion: 'TLSv1.2' } as const

/** Throws where the files are no certificate and its key. */
export function openCertificate(
  { cert, key }: { cert: string; key: string },
  checkEveryMs = 60_000,
): Certificate {
  const stamp = () => [cert, key].map(path => statSync(path, { throwIfNoEntry: false })?.mtimeMs).join()
  const read = () => {
    try {
      const files = { cert: readFileSync(cert), key: readFileSync(key) }
      createSecureContext(files)
      return files
    } catch (error) {
      const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
      throw new ConfigError(
        `The console cannot be served: web.tls.cert (${cert}) and web.tls.key (${key}) are no certificate and its key (${reason}).`,
      )
    }
  }
  let known = stamp()
  const first = read()
  let nextCheckAt = 0
  let use = (_files: { cert: Buffer; key: Buffer }) => {}
  return {
    createServer(options, listener) {
      const handshake = { handshakeTimeout: options.headersTimeout }
      const server = createServer({ ...options, ...handshake, ...first, ...oldest }, listener)
      // A stranger who breaks off a handshake is no failure of ours.
      server.on('tlsClientError', (_, connection) => connection.destroy())
      use = files => server.setSecureContext({ ...files, ...oldest })
      return server
    },
    renew() {
      if (performance.now() < nextCheckAt) return
      nextCheckAt = performance.now() + checkEveryMs
      const now = stamp()
      if (now === known) return
      try {
        use(read())
        known = now
      } catch (error) {
        // Half of it may be there; the one before goes on until the rest is.
        if (!(error instanceof ConfigError)) throw error
      }
    },
  }
}
