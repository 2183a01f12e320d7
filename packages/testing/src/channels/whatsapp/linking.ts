import { randomBytes } from 'node:crypto'
import type { Confirmation } from '../../../../host/src/chat/channels/types.ts'
import type { Baileys, BinaryNode } from '../../../../host/src/plugins/channels/whatsapp/library.ts'
import type { Connection } from './connection.ts'

/**
 * What the phone of the account does when a device is to be linked: it reads the QR code, or is given the code, and signs
 * the keys of the device. The server only carries it.
 */
export interface Linking {
  /** a device without an account has connected */
  begin(connection: Connection): void
  /** the operator scans or types it; false: it is not what a device shows now */
  confirm(what: Confirmation): Promise<boolean>
  /** what a device sends while it is being linked; undefined: it is about something else */
  answer(connection: Connection, node: BinaryNode): Promise<BinaryNode[] | undefined>
}

interface Waiting {
  connection: Connection
  refs: readonly string[]
  /** of a device that wants to be linked by a code */
  wrapped?: Buffer
  secret?: Promise<Buffer>
}

export function createLinking(options: {
  library: Baileys
  /** how many QR codes a device may show, one after another */
  refs: number
  phone: string
  lid: string
  linked(connection: Connection): void
}): Linking {
  const { library, phone, lid } = options
  const { Curve, proto, hkdf, hmacSign, aesDecryptGCM, aesEncryptCTR, aesDecryptCTR } = library
  const account = Curve.generateKeyPair()
  const waiting = new Set<Waiting>()
  const finishes = new Map<Connection, (node: BinaryNode) => void>()
  const id = () => randomBytes(4).toString('hex')

  /** The phone vouches for the device, which proves that it has seen the secret of the QR code. */
  const vouch = ({ connection }: Waiting, secret: Buffer) => {
    const device = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: 1 }).finish()
    const signed = Buffer.concat([Buffer.from([6, 0]), device, connection.identity])
    const details = proto.ADVSignedDeviceIdentity.encode({
      details: device,
      accountSignatureKey: account.public,
      accountSignature: Curve.sign(account.private, signed),
    }).finish()
    const content = proto.ADVSignedDeviceIdentityHMAC.encode({
      details,
      hmac: hmacSign(details, secret),
    }).finish()
    connection.send({
      tag: 'iq',
      attrs: { from: 's.whatsapp.net', type: 'set', id: `pair-${id()}`, xmlns: 'md' },
      content: [
        {
          tag: 'pair-success',
          attrs: {},
          content: [
            { tag: 'device-identity', attrs: {}, content },
            { tag: 'platform', attrs: { name: 'android' } },
            { tag: 'device', attrs: { jid: phone.replace('@', ':1@'), lid: lid.replace('@', ':1@') } },
          ],
        },
      ],
    })
  }

  const scan = async (value: string): Promise<boolean> => {
    const [ref = '', noise, identity, secret = ''] = value.slice(value.indexOf('#') + 1).split(',')
    const found = [...waiting].find(({ refs }) => refs.includes(ref))
    if (!found) return false
    const { connection } = found
    const isSame =
      noise === Buffer.from(connection.noiseKey).toString('base64') &&
      identity === Buffer.from(connection.identity).toString('base64')
    if (!isSame) throw new Error('the QR code has other keys than the device')
    waiting.delete(found)
    vouch(found, Buffer.from(secret, 'base64'))
    return true
  }

  /** Both sides prove to each other that they know the code, and agree on the secret that a QR code would have held. */
  const type = async (value: string): Promise<boolean> => {
    const found = [...waiting].find(({ wrapped }) => wrapped)
    if (!found?.wrapped) return false
    waiting.delete(found)
    const { connection, wrapped } = found
    const code = value.replace('-', '')
    const unwrap = async (bytes: Buffer) =>
      aesDecryptCTR(
        bytes.subarray(48),
        await library.derivePairingCodeKey(code, bytes.subarray(0, 32)),
        bytes.subarray(32, 48),
      )
    const theirs = await unwrap(wrapped)
    const ours = Curve.generateKeyPair()
    const salt = randomBytes(32)
    const iv = randomBytes(16)
    const key = await library.derivePairingCodeKey(code, salt)
    const finish = Promise.withResolvers<BinaryNode>()
    finishes.set(connection, finish.resolve)
    const part = (tag: string, content: Uint8Array): BinaryNode => ({ tag, attrs: {}, content })
    connection.send({
      tag: 'notification',
      attrs: { from: 's.whatsapp.net', id: id(), type: 'link_code_companion_reg', t: '1' },
      content: [
        {
          tag: 'link_code_companion_reg',
          attrs: { stage: 'primary_hello' },
          content: [
            part(
              'link_code_pairing_wrapped_primary_ephemeral_pub',
              Buffer.concat([salt, iv, aesEncryptCTR(ours.public, key, iv)]),
            ),
            part('primary_identity_pub', account.public),
            part('link_code_pairing_ref', Buffer.from('ref')),
          ],
        },
      ],
    })
    const sent = await finish.promise
    const bundle = library.getBinaryNodeChildBuffer(sent, 'link_code_pairing_wrapped_key_bundle')
    if (!bundle) throw new Error('no keys')
    const shared = Curve.sharedKey(ours.private, theirs)
    const expanded = hkdf(Buffer.from(shared), 32, {
      salt: Buffer.from(bundle.subarray(0, 32)),
      info: 'link_code_pairing_key_bundle_encryption_key',
    })
    const plain = aesDecryptGCM(bundle.subarray(44), expanded, bundle.subarray(32, 44), Buffer.alloc(0))
    if (!plain.subarray(0, 32).equals(connection.identity)) throw new Error('another device has the code')
    const identityShared = Curve.sharedKey(account.private, connection.identity)
    const random = plain.subarray(64)
    const secret = hkdf(Buffer.concat([shared, identityShared, random]), 32, { info: 'adv_secret' })
    vouch(found, Buffer.from(secret))
    return true
  }

  return {
    begin(connection) {
      const refs = Array.from({ length: options.refs }, () => `2@${randomBytes(12).toString('base64')}`)
      waiting.add({ connection, refs })
      connection.send({
        tag: 'iq',
        attrs: { from: 's.whatsapp.net', type: 'set', id: id(), xmlns: 'md' },
        content: [
          {
            tag: 'pair-device',
            attrs: {},
            content: refs.map(ref => ({ tag: 'ref', attrs: {}, content: Buffer.from(ref) })),
          },
        ],
      })
    },
    confirm: ({ kind, value }) => (kind === 'qr' ? scan(value) : type(value)),
    async answer(connection, node) {
      if (library.getBinaryNodeChild(node, 'pair-device-sign')) {
        options.linked(connection)
        return []
      }
      const registration = library.getBinaryNodeChild(node, 'link_code_companion_reg')
      if (!registration) return undefined
      if (registration.attrs.stage === 'companion_finish') finishes.get(connection)?.(registration)
      const wrapped = library.getBinaryNodeChildBuffer(
        registration,
        'link_code_pairing_wrapped_companion_ephemeral_pub',
      )
      for (const one of waiting)
        if (wrapped && one.connection === connection) one.wrapped = Buffer.from(wrapped)
      return [{ tag: 'link_code_companion_reg', attrs: {} }]
    },
  }
}
