import type { Baileys, BinaryNode } from '../../../../host/src/plugins/channels/whatsapp/library.ts'

/** The server's side of WhatsApp's line: Noise XX with a chain of certificates, then binary stanzas in frames. */
export interface Line {
  /** what arrived, as far as it is complete */
  receive(data: Buffer): Promise<readonly BinaryNode[]>
  encode(node: BinaryNode): Uint8Array
  /** what the client said of itself at the end of the handshake; undefined until then */
  client(): { payload: Uint8Array; noiseKey: Uint8Array } | undefined
}

let root: ReturnType<Baileys['Curve']['generateKeyPair']> | undefined

/** The library trusts one key. In this process it is ours. */
export function trustOurselves({ Curve, WA_CERT_DETAILS }: Baileys): void {
  root ??= Curve.generateKeyPair()
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(root.public)
}

function certificates({ Curve, proto }: Baileys, serverKey: Uint8Array): Uint8Array {
  if (!root) throw new Error('the library does not trust us yet')
  const { Details } = proto.CertChain.NoiseCertificate
  const middle = Curve.generateKeyPair()
  const leaf = Details.encode({ serial: 2, issuerSerial: 1, key: serverKey }).finish()
  const intermediate = Details.encode({ serial: 1, issuerSerial: 0, key: middle.public }).finish()
  return proto.CertChain.encode({
    leaf: { details: leaf, signature: Curve.sign(middle.private, leaf) },
    intermediate: { details: intermediate, signature: Curve.sign(root.private, intermediate) },
  }).finish()
}

export function createLine(library: Baileys, send: (data: Uint8Array) => void): Line {
  const { Curve, hkdf, sha256, aesEncryptGCM, aesDecryptGCM, proto, NOISE_MODE, NOISE_WA_HEADER } = library
  const ephemeral = Curve.generateKeyPair()
  const own = Curve.generateKeyPair()
  let hash: Buffer = Buffer.from(NOISE_MODE)
  let salt: Uint8Array = hash
  let key: Uint8Array = hash
  let counter = 0
  let transport: { read: Uint8Array; write: Uint8Array; reads: number; writes: number } | undefined
  let client: ReturnType<Line['client']>
  let pending = Buffer.alloc(0)
  let stage: 'header' | 'hello' | 'finish' | 'open' = 'header'

  const iv = (count: number) => {
    const bytes = Buffer.alloc(12)
    bytes.writeUInt32BE(count, 8)
    return bytes
  }
  const authenticate = (data: Uint8Array) => {
    hash = sha256(Buffer.concat([hash, data]))
  }
  const derive = (data: Uint8Array) => {
    const both = hkdf(Buffer.from(data), 64, { salt: Buffer.from(salt), info: '' })
    return [both.subarray(0, 32), both.subarray(32)] as const
  }
  const mix = (data: Uint8Array) => {
    ;[salt, key] = derive(data)
    counter = 0
  }
  const seal = (plain: Uint8Array) => {
    const sealed = aesEncryptGCM(plain, key, iv(counter++), hash)
    authenticate(sealed)
    return sealed
  }
  const unseal = (sealed: Uint8Array) => {
    const plain = aesDecryptGCM(sealed, key, iv(counter++), hash)
    authenticate(sealed)
    return plain
  }
  const framed = (data: Uint8Array) => {
    const head = Buffer.alloc(3)
    head.writeUIntBE(data.length, 0, 3)
    return Buffer.concat([head, data])
  }

  const greet = (frame: Buffer) => {
    const theirs = proto.HandshakeMessage.decode(frame).clientHello?.ephemeral
    if (!theirs) throw new Error('no hello')
    authenticate(NOISE_WA_HEADER)
    authenticate(theirs)
    authenticate(ephemeral.public)
    mix(Curve.sharedKey(ephemeral.private, theirs))
    const sealedKey = seal(own.public)
    mix(Curve.sharedKey(own.private, theirs))
    const payload = seal(certificates(library, own.public))
    const serverHello = { ephemeral: ephemeral.public, static: sealedKey, payload }
    send(framed(proto.HandshakeMessage.encode({ serverHello }).finish()))
  }
  const finish = (frame: Buffer) => {
    const { static: sealedKey, payload } = proto.HandshakeMessage.decode(frame).clientFinish ?? {}
    if (!sealedKey || !payload) throw new Error('no finish')
    const noiseKey = unseal(sealedKey)
    mix(Curve.sharedKey(ephemeral.private, noiseKey))
    client = { payload: unseal(payload), noiseKey }
    const [read, write] = derive(new Uint8Array(0))
    transport = { read, write, reads: 0, writes: 0 }
  }

  return {
    async receive(data) {
      pending = Buffer.concat([pending, data])
      if (stage === 'header') {
        if (!pending.subarray(0, 4).equals(NOISE_WA_HEADER)) throw new Error('not a client of WhatsApp')
        pending = pending.subarray(4)
        stage = 'hello'
      }
      const nodes: BinaryNode[] = []
      while (pending.length >= 3 && pending.length >= 3 + pending.readUIntBE(0, 3)) {
        const end = 3 + pending.readUIntBE(0, 3)
        const frame = Buffer.from(pending.subarray(3, end))
        pending = pending.subarray(end)
        if (stage === 'hello') {
          greet(frame)
          stage = 'finish'
        } else if (stage === 'finish') {
          finish(frame)
          stage = 'open'
        } else if (transport) {
          const plain = aesDecryptGCM(frame, transport.read, iv(transport.reads++), Buffer.alloc(0))
          nodes.push(await library.decodeBinaryNode(plain))
        }
      }
      return nodes
    },
    encode(node) {
      if (!transport) throw new Error('the line is not open yet')
      const plain = library.encodeBinaryNode(node)
      return framed(aesEncryptGCM(plain, transport.write, iv(transport.writes++), Buffer.alloc(0)))
    },
    client: () => client,
  }
}
