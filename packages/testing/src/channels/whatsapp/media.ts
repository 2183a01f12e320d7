import { execFileSync } from 'node:child_process'
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Baileys } from '../../../../host/src/plugins/channels/whatsapp/library.ts'

/** WhatsApp's server for files: it keeps what is encrypted, and knows no key. */
export interface MediaServer {
  host: string
  /** paths that were asked for */
  asked: string[]
  put(content: Buffer): string
  get(path: string): Buffer | undefined
  close(): Promise<void>
}

let certificate: { cert: Buffer; key: Buffer } | undefined

/** Of our own, which this process trusts from now on. */
function ownCertificate() {
  if (certificate) return certificate
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-media-'))
  try {
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const args =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1'
    execFileSync('openssl', [...args.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' })
    certificate = { cert: readFileSync(cert), key: readFileSync(key) }
  } finally {
    rmSync(folder, { recursive: true })
  }
  setDefaultCACertificates([...getCACertificates('default'), certificate.cert.toString()])
  return certificate
}

export async function startMedia(): Promise<MediaServer> {
  const files = new Map<string, Buffer>()
  const asked: string[] = []
  const put = (content: Buffer) => {
    const path = `/v/t62.7119-24/${randomBytes(8).toString('hex')}?ccb=11-4`
    files.set(path, content)
    return path
  }
  const server = createServer(ownCertificate(), async (request, response) => {
    const path = request.url ?? ''
    if (request.method !== 'POST') {
      asked.push(path)
      const content = files.get(path)
      response.writeHead(content ? 200 : 404).end(content)
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const direct_path = put(Buffer.concat(chunks))
    response.end(JSON.stringify({ url: `https://${host}${direct_path}`, direct_path }))
  })
  const ready = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', ready.resolve)
  await ready.promise
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    asked,
    put,
    get: path => files.get(path),
    async close() {
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      server.closeAllConnections()
      await promise
    },
  }
}

/** As apps encrypt a file: AES-CBC, and ten bytes of a MAC. */
export async function sealed(library: Baileys, kind: 'document' | 'image' | 'audio', content: Buffer) {
  const mediaKey = randomBytes(32)
  const { cipherKey, iv, macKey } = await library.getMediaKeys(mediaKey, kind)
  const cipher = createCipheriv('aes-256-cbc', cipherKey, iv)
  const encrypted = Buffer.concat([cipher.update(content), cipher.final()])
  const mac = createHmac('sha256', macKey ?? '')
    .update(iv)
    .update(encrypted)
    .digest()
    .subarray(0, 10)
  const bytes = Buffer.concat([encrypted, mac])
  const fileSha256 = createHash('sha256').update(content).digest()
  return { bytes, media: { mediaKey, fileSha256, fileLength: content.length } }
}

export async function unsealed(
  library: Baileys,
  kind: 'document' | 'image',
  mediaKey: Uint8Array,
  bytes: Buffer,
): Promise<Buffer> {
  const { cipherKey, iv } = await library.getMediaKeys(mediaKey, kind)
  const cipher = createDecipheriv('aes-256-cbc', cipherKey, iv)
  return Buffer.concat([cipher.update(bytes.subarray(0, -10)), cipher.final()])
}
