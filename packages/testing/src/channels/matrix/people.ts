import { Attachment, EncryptedAttachment } from '@matrix-org/matrix-sdk-crypto-wasm'
import {
  ClientEvent,
  createClient,
  Direction,
  type MatrixClient,
  type MatrixEvent,
  type Room,
  SyncState,
} from 'matrix-js-sdk'
import { OnlySignedDevicesIsolationMode } from 'matrix-js-sdk/lib/crypto-api/index.js'
import { type Logger, logger } from 'matrix-js-sdk/lib/logger.js'
import { z } from 'zod'
import { until } from '../../until.ts'

/** Somebody on Matrix, with the library of the Element app: another implementation than the channel's. */
export interface MatrixPerson {
  id: string
  name: string
  client: MatrixClient
  /** a room that this person's app knows, as the server has it now */
  room(id: string): Promise<Room>
  /** an event in a room, encrypted where the room is */
  post(room: string, type: string, content: object): Promise<string>
  attach(room: string, file: { name: string; content: Buffer }): Promise<object>
  /** the size of a file, once it is decrypted */
  measure(content: Record<string, unknown>): Promise<number>
  close(): Promise<void>
}

const nothing = () => {}
const silent: Logger = {
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  getChild: () => silent,
}

// Some parts of the library take their logger from here.
Object.assign(logger, silent, { log: nothing })

const accountSchema = z.object({ user_id: z.string(), access_token: z.string(), device_id: z.string() })
export const password = 'correct horse battery staple'

export async function call<T>(
  schema: z.ZodType<T>,
  url: string,
  { method, path, body, token }: { method: string; path: string; body?: object; token?: string },
): Promise<T> {
  const response = await fetch(`${url}/_matrix/client/v3/${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer: unknown = await response.json()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return schema.parse(answer)
}

/** An account, and the name that people see. */
export async function register(url: string, username: string, name: string) {
  const body = { username, password, auth: { type: 'm.login.dummy' }, initial_device_display_name: 'test' }
  const account = await call(accountSchema, url, { method: 'POST', path: 'register', body })
  const path = `profile/${encodeURIComponent(account.user_id)}/displayname`
  await call(z.unknown(), url, {
    method: 'PUT',
    path,
    body: { displayname: name },
    token: account.access_token,
  })
  return account
}

export async function openPerson(
  url: string,
  username: string,
  name: string,
  { isVerified = true } = {},
): Promise<MatrixPerson> {
  const account = await register(url, username, name)
  const client = createClient({
    baseUrl: url,
    userId: account.user_id,
    deviceId: account.device_id,
    accessToken: account.access_token,
    logger: silent,
  })
  await client.initRustCrypto({ useIndexedDB: false })
  const crypto = client.getCrypto()
  if (!crypto) throw new Error('the app has no encryption')
  // As Element does since 2026: devices that nobody vouches for get no keys.
  if (isVerified) crypto.setDeviceIsolationMode(new OnlySignedDevicesIsolationMode())
  const isReady = new Promise<void>(resolve => {
    client.on(ClientEvent.Sync, state => {
      if (state === SyncState.Prepared) resolve()
    })
  })
  await client.startClient({ initialSyncLimit: 100, pollTimeout: 10_000 })
  await isReady
  const authUploadDeviceSigningKeys = async (make: (auth: null) => Promise<void>) => make(null)
  if (isVerified)
    await crypto.bootstrapCrossSigning({ setupNewCrossSigning: true, authUploadDeviceSigningKeys })

  const room = async (id: string): Promise<Room> => {
    const latest = await client.createMessagesRequest(id, null, 1, Direction.Backward)
    const last = latest.chunk[0]?.event_id ?? ''
    const found = () => client.getRoom(id) ?? undefined
    await until(() => found()?.findEventById(last) !== undefined)
    const events = found()?.getLiveTimeline().getEvents() ?? []
    await until(() => events.every(event => !isPending(event)))
    const known = found()
    if (!known) throw new Error(`no room ${id}`)
    return known
  }
  const isSecret = (id: string) => client.getRoom(id)?.hasEncryptionStateEvent() === true

  return {
    id: account.user_id,
    name,
    client,
    room,
    async post(id, type, content) {
      const send: (room: string, type: string, content: object) => Promise<{ event_id: string }> =
        client.sendEvent.bind(client) as never
      return (await send(id, type, content)).event_id
    },
    async attach(id, { name: filename, content }) {
      const info = { size: content.length }
      if (!isSecret(id)) {
        const { content_uri } = await client.uploadContent(new Blob([new Uint8Array(content)]), {
          name: filename,
        })
        return { filename, info, url: content_uri }
      }
      const encrypted = Attachment.encrypt(new Uint8Array(content))
      const { content_uri } = await client.uploadContent(new Blob([new Uint8Array(encrypted.encryptedData)]))
      const described = JSON.parse(encrypted.mediaEncryptionInfo ?? '{}')
      return { filename, info, file: { ...described, url: content_uri } }
    },
    async measure(content) {
      const file = content.file as { url: string } | undefined
      const uri = file?.url ?? String(content.url)
      const response = await fetch(
        client.mxcUrlToHttp(uri, undefined, undefined, undefined, false, true, true) ?? '',
        {
          headers: { authorization: `Bearer ${account.access_token}` },
        },
      )
      const bytes = new Uint8Array(await response.arrayBuffer())
      if (!file) return bytes.length
      return Attachment.decrypt(new EncryptedAttachment(bytes, JSON.stringify(file))).length
    },
    async close() {
      client.stopClient()
      await client.http.abort?.()
    },
  }
}

const isPending = (event: MatrixEvent) => event.isBeingDecrypted() || event.shouldAttemptDecryption()
