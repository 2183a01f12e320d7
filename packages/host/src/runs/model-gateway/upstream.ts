import {
  type ClientRequest,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import type { ModelRequest } from './request.ts'

/** A connection of its own for every request, so that no request can ever stand behind another one. */
export function createUpstream(
  url: string,
  silenceMs: number,
): (wanted: ModelRequest, body: Buffer) => ClientRequest {
  const upstream = new URL(url)
  const isSecure = upstream.protocol === 'https:'
  const agent = isSecure
    ? new SecureAgent({ keepAlive: false, proxyEnv: process.env })
    : new PlainAgent({ keepAlive: false, proxyEnv: process.env })
  const send = isSecure ? secureRequest : plainRequest
  return ({ method, path, headers }: ModelRequest, body: Buffer): ClientRequest => {
    const asked = send({
      protocol: upstream.protocol,
      // An IPv6 address stands in brackets in a URL and without them in a connection.
      hostname: upstream.hostname.replace(/^\[|\]$/g, ''),
      port: upstream.port || (isSecure ? 443 : 80),
      method,
      path: upstream.pathname.replace(/\/$/, '') + path,
      headers: method === 'GET' ? headers : { ...headers, 'content-length': String(body.length) },
      agent,
      timeout: silenceMs,
      insecureHTTPParser: false,
    })
    endUnlessConnected(asked, isSecure ? 'secureConnect' : 'connect')
    asked.end(method === 'GET' ? undefined : body)
    return asked
  }
}

/** An address where nobody answers would otherwise be waited for as long as a slow model. */
const connectMs = 4000

function endUnlessConnected(asked: ClientRequest, connected: 'connect' | 'secureConnect'): void {
  const timer = setTimeout(() => {
    asked.destroy(Object.assign(new Error('no connection within four seconds'), { code: 'ETIMEDOUT' }))
  }, connectMs)
  asked.on('socket', socket => socket.once(connected, () => clearTimeout(timer)))
  asked.on('close', () => clearTimeout(timer))
}

/** Why an answer cannot be given to an agent, if so. */
export function unusable({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  if (statusCode < 200 || (statusCode >= 300 && statusCode < 400)) return `it answered with ${statusCode}`
  const coding = headers['content-encoding'] ?? 'identity'
  return coding === 'identity' ? undefined : 'it answered in an encoding that was not asked for'
}
