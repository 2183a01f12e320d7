import type * as Library from '@matrix-org/matrix-sdk-crypto-wasm'
import { z } from 'zod'
import { createWorkQueue } from '../../../base/keyed-queue.ts'
import { type Client, MatrixRefusal } from './client.ts'
import type { KeyStore, Session } from './key-store.ts'
import type { MatrixSettings } from './settings.ts'

export type CryptoLibrary = typeof Library

/** End-to-end encryption for one device. Keys are on the disk before anything that needs them leaves this machine. */
export interface Crypto {
  /** publishes our keys, and an identity that vouches for this device; what is missing for that, in a sentence */
  start(): Promise<string | undefined>
  /** what a sync has for us beside what was said */
  receive(sync: CryptoSync): Promise<void>
  /** knows the devices of these from now on; others' messages cannot be trusted */
  track(users: readonly string[]): Promise<void>
  /** what is to be sent in place of the content; `users` are all who may read it */
  encrypt(room: string, type: string, content: object, users: readonly string[]): Promise<object>
  /** the event with its true type and content, as JSON */
  decrypt(room: string, event: object): Promise<unknown>
  /** once a room is encrypted it stays so, whatever the server says later */
  isEncrypted(room: string): Promise<boolean>
  setEncrypted(room: string): Promise<void>
  save(): Promise<void>
  close(): Promise<void>
}

export const cryptoSyncSchema = z.object({
  to_device: z.object({ events: z.array(z.unknown()) }).optional(),
  device_lists: z
    .object({ changed: z.array(z.string()).default([]), left: z.array(z.string()).default([]) })
    .optional(),
  device_one_time_keys_count: z.record(z.string(), z.number()).default({}),
  device_unused_fallback_key_types: z.array(z.string()).optional(),
})
type CryptoSync = z.output<typeof cryptoSyncSchema>

/** Why a message could not be read. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

const anything = z.record(z.string(), z.unknown())
const ownKeysSchema = z.object({
  master_keys: anything.default({}),
  device_keys: z
    .record(
      z.string(),
      z.record(z.string(), z.object({ signatures: z.record(z.string(), anything).optional() })),
    )
    .default({}),
})

export async function openCrypto(options: {
  library: CryptoLibrary
  keys: KeyStore
  session: Session
  client: Client
  settings: Pick<MatrixSettings, 'password' | 'unverified' | 'reset'>
}): Promise<Crypto> {
  const { library, keys, session, client, settings } = options
  const { RoomId, UserId } = library
  await library.initAsync()
  await keys.load()
  const machine = await library.OlmMachine.initialize(
    new UserId(session.user),
    new library.DeviceId(session.device),
    keys.name,
  )
  const { Untrusted, CrossSigned } = library.TrustRequirement
  const trust = new library.DecryptionSettings(settings.unverified ? Untrusted : CrossSigned)
  // The library asks for one request of a room at a time, and so it is for those that belong to none.
  const queue = createWorkQueue()
  const everybody = ''
  /** an identity of the account says that this device is ours */
  let isVouched = false

  const tell = async (request: Request) => {
    await keys.save()
    const answer = await client.ask(anything, ...addressOf(request, library), { body: request.body })
    if (request.id !== undefined)
      await machine.markRequestAsSent(request.id, request.type, JSON.stringify(answer))
  }
  const tellAll = () =>
    queue.run(everybody, undefined, async () => {
      for (const request of await machine.outgoingRequests()) await tell(request)
      await keys.save()
    })

  /** The server wants the password for an identity that replaces another. */
  const publish = async (body: string) => {
    const ask = (auth?: object) =>
      client.ask(anything, 'POST', ['v3', 'keys', 'device_signing', 'upload'], {
        body: { ...JSON.parse(body), ...(auth && { auth }) },
      })
    try {
      await ask()
    } catch (error) {
      if (!(error instanceof MatrixRefusal) || error.confirmation === undefined) throw error
      if (settings.password === '') throw new Error('The homeserver wants the password for that.')
      const identifier = { type: 'm.id.user', user: session.user }
      const { password } = settings
      await ask({ type: 'm.login.password', identifier, password, session: error.confirmation })
    }
  }

  const track = async (users: readonly string[]) => {
    await machine.updateTrackedUsers(idsOf(users, library))
    await tellAll()
  }

  /** The identity of the account, if it is ours: made here, or by a device of ours before this one. */
  const ownsIdentity = async (): Promise<boolean> => {
    const isOurs = ({ hasMaster, hasSelfSigning }: Library.CrossSigningStatus) => hasMaster && hasSelfSigning
    if (isOurs(await machine.crossSigningStatus())) return true
    const before = keys.identity(session.user)
    if (!before) return false
    const { master, selfSigning, userSigning } = before
    return isOurs(await machine.importCrossSigningKeys(master, selfSigning, userSigning))
  }
  const keepIdentity = async () => {
    const { masterKey, self_signing_key, userSigningKey } = (await machine.exportCrossSigningKeys()) ?? {}
    if (masterKey !== undefined && self_signing_key !== undefined && userSigningKey !== undefined)
      keys.setIdentity({
        user: session.user,
        master: masterKey,
        selfSigning: self_signing_key,
        userSigning: userSigningKey,
      })
  }

  const start = async () => {
    await tellAll()
    const { user, device } = session
    const body = { device_keys: { [user]: [] } }
    const known = await client.ask(ownKeysSchema, 'POST', ['v3', 'keys', 'query'], { body })
    const isPublished = known.master_keys[user] !== undefined
    const signatures = known.device_keys[user]?.[device]?.signatures?.[user] ?? {}
    const isOurs = await ownsIdentity()
    // The device signs itself; another signature is that of the identity.
    isVouched = isPublished && Object.keys(signatures).length > 1
    if (isVouched) return undefined
    if (isPublished && !isOurs && !settings.reset)
      return 'The account has an identity from another app, which does not vouch for this session: people whose apps want verified devices cannot be read. Use an account for Hatchway alone, or replace the identity with --set reset=yes.'
    if (isPublished && isOurs) {
      const self = await machine.getDevice(new UserId(user), new library.DeviceId(device))
      if (self) await tell(await self.verify())
    } else {
      const requests = await machine.bootstrapCrossSigning(!isOurs)
      await keys.save()
      await keepIdentity()
      if (requests.uploadKeysRequest) await tell(requests.uploadKeysRequest)
      await publish(requests.uploadSigningKeysRequest.body)
      await tell(requests.uploadSignaturesRequest)
    }
    await tellAll()
    isVouched = true
    return undefined
  }

  return {
    start,
    async receive({ to_device, device_lists, device_one_time_keys_count, device_unused_fallback_key_types }) {
      const { changed = [], left = [] } = device_lists ?? {}
      await machine.receiveSyncChanges(
        JSON.stringify(to_device?.events ?? []),
        new library.DeviceLists(idsOf(changed, library), idsOf(left, library)),
        new Map(Object.entries(device_one_time_keys_count)),
        device_unused_fallback_key_types && new Set(device_unused_fallback_key_types),
      )
      await keys.save()
      await tellAll()
    },
    track,
    encrypt: (room, type, content, users) =>
      queue.run(room, undefined, async () => {
        await track(users)
        const claim = await machine.getMissingSessions(idsOf(users, library))
        if (claim) await tell(claim)
        const how = new library.EncryptionSettings()
        // The library wants an identity of ours before it asks others for theirs.
        how.sharingStrategy =
          settings.unverified || !isVouched
            ? library.CollectStrategy.allDevices()
            : library.CollectStrategy.identityBasedStrategy()
        for (const request of await machine.shareRoomKey(new RoomId(room), idsOf(users, library), how))
          await tell(request)
        const encrypted = await machine.encryptRoomEvent(new RoomId(room), type, JSON.stringify(content))
        await keys.save()
        return anything.parse(JSON.parse(encrypted))
      }),
    async decrypt(room, event) {
      try {
        const { event: decrypted } = await machine.decryptRoomEvent(
          JSON.stringify(event),
          new RoomId(room),
          trust,
        )
        return JSON.parse(decrypted)
      } catch (error) {
        if (!(error instanceof library.MegolmDecryptionError)) throw error
        throw new Unreadable(unreadable(error, library))
      }
    },
    isEncrypted: async room => (await machine.getRoomSettings(new RoomId(room))) !== undefined,
    async setEncrypted(room) {
      if (await machine.getRoomSettings(new RoomId(room))) return
      const how = new library.RoomSettings()
      how.algorithm = library.EncryptionAlgorithm.MegolmV1AesSha2
      await machine.setRoomSettings(new RoomId(room), how)
      await keys.save()
    },
    save: keys.save,
    async close() {
      await queue.stop(new Error('The channel is closing.'))
      try {
        await keys.save()
      } finally {
        machine.close()
      }
    },
  }
}

/** The library takes each id away with it. One that is no user's has no devices. */
const idsOf = (users: readonly string[], { UserId }: CryptoLibrary): Library.UserId[] =>
  users.filter(id => /^@[\x21-\x39\x3b-\x7e]*:[\w.:[\]-]{1,230}$/.test(id)).map(id => new UserId(id))

interface Request {
  id?: string | undefined
  type: Library.RequestType
  body: string
  event_type?: string
  txn_id?: string
}

function addressOf(request: Request, { RequestType }: CryptoLibrary): ['POST' | 'PUT', string[]] {
  switch (request.type) {
    case RequestType.KeysUpload:
      return ['POST', ['v3', 'keys', 'upload']]
    case RequestType.KeysQuery:
      return ['POST', ['v3', 'keys', 'query']]
    case RequestType.KeysClaim:
      return ['POST', ['v3', 'keys', 'claim']]
    case RequestType.SignatureUpload:
      return ['POST', ['v3', 'keys', 'signatures', 'upload']]
    case RequestType.ToDevice:
      return ['PUT', ['v3', 'sendToDevice', request.event_type ?? '', request.txn_id ?? '']]
    default:
      throw new Error(`The crypto library asks for something that is not used here (${request.type}).`)
  }
}

function unreadable(
  { code, description, maybe_withheld: withheld }: Library.MegolmDecryptionError,
  { DecryptionErrorCode }: CryptoLibrary,
): string {
  if (withheld !== undefined) return `their app keeps the key from us: ${withheld}`
  if (code === DecryptionErrorCode.UnsignedSenderDevice || code === DecryptionErrorCode.UnknownSenderDevice)
    return 'its sender has not verified the device. Verify it in their app, or allow it with --set unverified=yes'
  if (code === DecryptionErrorCode.MissingRoomKey) return 'the key has not arrived'
  return description
}
