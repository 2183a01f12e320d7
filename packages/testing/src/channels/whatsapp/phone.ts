import { pino } from 'pino'
import type {
  Baileys,
  BinaryNode,
  proto,
  SignalDataTypeMap,
} from '../../../../host/src/plugins/channels/whatsapp/library.ts'
import { libraryLogger, quietly } from '../../../../host/src/plugins/channels/whatsapp/quiet.ts'

/** The phone of a person: its keys, and its end of the encryption. */
export interface Phone {
  number: string
  name: string
  address: string
  lid: string
  /** what others need to write to it */
  bundle(): Promise<readonly BinaryNode[]>
  /** bytes: whatever they are; with keys that the device has just sent, if there are any */
  encrypt(to: Peer, message: proto.IMessage | Uint8Array, fresh?: PeerKeys): Promise<BinaryNode>
  decrypt(from: string, cipher: BinaryNode): Promise<proto.IMessage>
  encryptForGroup(group: string, to: Peer, message: proto.IMessage): Promise<readonly BinaryNode[]>
  decryptFromGroup(group: string, from: string, cipher: BinaryNode): Promise<proto.IMessage>
  takeGroupKey(from: string, message: proto.IMessage): Promise<void>
  /** what others need to read what it says in a group */
  groupKey(group: string): Promise<proto.IMessage>
  forget(address: string): Promise<void>
}

/** A device that a phone writes to, by one address, and how to begin with it. */
export interface Peer {
  address: string
  begin(): {
    registrationId: number
    identity: Uint8Array
    signed: { keyId: number; key: Uint8Array; signature: Uint8Array }
    once: { keyId: number; key: Uint8Array } | undefined
  }
}

/** What a device sends along when it could not read something. */
type PeerKeys = NonNullable<ReturnType<Baileys['extractE2ESessionFromRetryReceipt']>>

/**
 * One after the other, all phones. The cipher has a queue for each address that is written to, and they all write to the
 * same: what waits there would be done in the transaction of another, and be gone with it.
 */
function alone<T>(work: () => Promise<T>): Promise<T> {
  const nothing = () => {}
  const result = last.then(() => quietly(work))
  last = result.then(nothing, nothing)
  return result
}
let last: Promise<void> = Promise.resolve()

const silent = libraryLogger(pino({ level: 'silent' }))

export function createPhone(
  library: Baileys,
  { number, lid, name }: { number: string; lid: string; name: string },
): Phone {
  const { initAuthCreds, addTransactionCapability, encodeBigEndian, generateSignalPubKey, Curve } = library
  const creds = initAuthCreds()
  const stored = new Map<string, unknown>()
  const store = {
    async get<T extends keyof SignalDataTypeMap>(type: T, ids: string[]) {
      const found = ids.flatMap(id => {
        const value = stored.get(`${type} ${id}`)
        return value === undefined ? [] : [[id, value]]
      })
      return Object.fromEntries(found) as Record<string, SignalDataTypeMap[T]>
    },
    async set(data: object) {
      for (const [type, values] of Object.entries(data))
        for (const [id, value] of Object.entries(values ?? {}))
          if (value === null) stored.delete(`${type} ${id}`)
          else stored.set(`${type} ${id}`, value)
    },
  }
  const keys = addTransactionCapability(store, silent, { maxCommitRetries: 1, delayBetweenTriesMs: 1 })
  const repository = library.DEFAULT_CONNECTION_CONFIG.makeSignalRepository({ creds, keys }, silent)
  const address = `${number}@s.whatsapp.net`
  let lastKey = 0

  const inject = ({ address: jid }: Peer, { preKey, ...session }: PeerKeys) =>
    repository.injectE2ESession({ jid, session: { ...session, ...(preKey && { preKey }) } })
  const begin = async (peer: Peer) => {
    if ((await repository.validateSession(peer.address)).exists) return
    const { registrationId, identity, signed, once } = peer.begin()
    const signedPreKey = {
      keyId: signed.keyId,
      publicKey: generateSignalPubKey(signed.key),
      signature: signed.signature,
    }
    const preKey = once && { keyId: once.keyId, publicKey: generateSignalPubKey(once.key) }
    await inject(peer, {
      registrationId,
      identityKey: generateSignalPubKey(identity),
      signedPreKey,
      preKey,
    })
  }
  const enc = (type: string, content: Uint8Array): BinaryNode => ({
    tag: 'enc',
    attrs: { v: '2', type },
    content,
  })
  const plainOf = (bytes: Uint8Array) => library.proto.Message.decode(library.unpadRandomMax16(bytes))
  const bytesOf = (node: BinaryNode): Uint8Array => {
    if (node.content instanceof Uint8Array) return node.content
    throw new Error('nothing encrypted')
  }
  const groupKeyMessage = (groupId: string, key: Uint8Array): proto.IMessage => ({
    senderKeyDistributionMessage: { groupId, axolotlSenderKeyDistributionMessage: key },
  })
  const encrypt = async (to: Peer, message: proto.IMessage | Uint8Array, fresh?: PeerKeys) => {
    if (fresh) await inject(to, fresh)
    else await begin(to)
    const data = message instanceof Uint8Array ? message : library.encodeWAMessage(message)
    const { type, ciphertext } = await repository.encryptMessage({ jid: to.address, data })
    return enc(type, ciphertext)
  }

  return {
    number,
    name,
    address,
    lid,
    async bundle() {
      const id = ++lastKey
      const pair = Curve.generateKeyPair()
      await store.set({ 'pre-key': { [id]: pair } })
      return [
        { tag: 'registration', attrs: {}, content: encodeBigEndian(creds.registrationId) },
        { tag: 'type', attrs: {}, content: Buffer.from([5]) },
        { tag: 'identity', attrs: {}, content: creds.signedIdentityKey.public },
        library.xmppSignedPreKey(creds.signedPreKey),
        library.xmppPreKey(pair, id),
      ]
    },
    encrypt: (...given) => alone(() => encrypt(...given)),
    decrypt: (from, node) =>
      alone(async () => {
        const type = node.attrs.type === 'pkmsg' ? 'pkmsg' : 'msg'
        const given = { jid: from, type, ciphertext: bytesOf(node) } as const
        return plainOf(await repository.decryptMessage(given))
      }),
    encryptForGroup: (group, to, message) =>
      alone(async () => {
        const data = library.encodeWAMessage(message)
        const sealed = await repository.encryptGroupMessage({ group, meId: lid, data })
        const key = groupKeyMessage(group, sealed.senderKeyDistributionMessage)
        return [await encrypt(to, key), enc('skmsg', sealed.ciphertext)]
      }),
    decryptFromGroup: (group, from, node) =>
      alone(async () =>
        plainOf(await repository.decryptGroupMessage({ group, authorJid: from, msg: bytesOf(node) })),
      ),
    takeGroupKey: (from, { senderKeyDistributionMessage: item }) =>
      alone(async () => {
        if (item) await repository.processSenderKeyDistributionMessage({ authorJid: from, item })
      }),
    groupKey: group =>
      alone(async () =>
        groupKeyMessage(group, await repository.getSenderKeyDistributionMessage({ group, meId: lid })),
      ),
    forget: one => alone(() => repository.deleteSession([one])),
  }
}
