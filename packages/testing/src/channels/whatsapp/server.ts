import type { Baileys, BinaryNode } from '../../../../host/src/plugins/channels/whatsapp/library.ts'
import type { Connection } from './connection.ts'
import { listen, type ServerSocket } from './library.ts'
import { createLinking } from './linking.ts'
import type { MediaServer } from './media.ts'
import { createLine, trustOurselves } from './noise.ts'
import type { Peer, Phone } from './phone.ts'

/**
 * A stand-in for the server of WhatsApp Web. WhatsApp has published nothing about it; this is written from what the library
 * expects of it. It carries what is encrypted from one device to another, keeps what a device has not confirmed, and gives
 * that again when it connects.
 */
export interface ServerOptions {
  library: Baileys
  media: MediaServer
  phones: readonly Phone[]
  /** the account's own phone */
  owner: Phone
  refs: number
  groups: Map<string, { subject: string; members: Set<Phone>; hasUs: boolean }>
  /** our device says something; what it is refused with, if it is */
  said(node: BinaryNode): Promise<{ error: string; backoff?: string } | undefined>
  /** our device could not read what somebody said */
  again(receipt: BinaryNode): Promise<void>
  typing(to: string, isOn: boolean): void
}

/** The linked device, as others see it. */
interface Device {
  identity: Uint8Array
  registrationId: number
  signed: ReturnType<Peer['begin']>['signed']
  once: { keyId: number; key: Uint8Array }[]
}

const computerNumber = '2'

export async function startWhatsApp(options: ServerOptions) {
  const { library, media, owner, groups } = options
  trustOurselves(library)
  const { getBinaryNodeChild: child, getBinaryNodeChildren: children } = library
  const address = owner.address.replace('@', ':1@')
  const connections = new Set<Connection>()
  let device: Device | undefined
  let current: Connection | undefined
  /** what the device has not confirmed, in its order, and what it has */
  const pending: BinaryNode[] = []
  const confirmed: BinaryNode[] = []
  /** what it confirmed, and how; one with an error has been refused */
  const receipts: BinaryNode[] = []
  /** what it could not read and has not confirmed yet */
  const unreadable = new Map<string, BinaryNode>()
  /** the owner's other computer, if there is one: its keys are given out only then */
  let computer: { asked(): void; released: Promise<void> } | undefined
  let loginFailure: string | undefined
  let server: Awaited<ReturnType<typeof listen>> | undefined
  let port = 0

  const linking = createLinking({
    library,
    refs: options.refs,
    phone: owner.address,
    lid: owner.lid,
    linked(connection) {
      device = registered.get(connection)
      confirmed.length = 0
      pending.length = 0
      connection.send({ tag: 'stream:error', attrs: { code: '515' } })
      connection.end()
    },
  })
  const registered = new Map<Connection, Device>()

  const confirm = (id: string | undefined) => {
    const at = pending.findIndex(({ attrs }) => attrs.id === id)
    if (at < 0) return
    // One that came once more takes the place of the one before.
    const before = confirmed.findIndex(({ attrs }) => attrs.id === id)
    if (before >= 0) confirmed.splice(before, 1)
    confirmed.push(...pending.splice(at, 1))
  }
  const phoneAt = (jid: string): Phone | undefined => {
    const plain = jid.replace(/[:_]\d+(?=@)/, '')
    return [owner, ...options.phones].find(one => one.address === plain || one.lid === plain)
  }
  const groupNode = (id: string): BinaryNode => {
    const group = groups.get(id)
    const member = (phone: Phone): BinaryNode => ({
      tag: 'participant',
      attrs: { jid: phone.lid, phone_number: phone.address },
    })
    return {
      tag: 'group',
      attrs: {
        id: id.split('@')[0] ?? '',
        subject: group?.subject ?? '',
        creation: '1',
        s_t: '1',
        addressing_mode: 'lid',
      },
      content: [...(group?.members ?? []), owner].map(member),
    }
  }

  /** Queries by their namespace; what is not listed is answered with nothing. */
  const queries: Record<
    string,
    (node: BinaryNode, connection: Connection) => Promise<BinaryNode[]> | BinaryNode[]
  > = {
    async encrypt(node) {
      // More than none: the device makes a few keys, not 812.
      if (child(node, 'count'))
        return [{ tag: 'count', attrs: { value: String((device?.once.length ?? 0) + 1) } }]
      if (child(node, 'digest')) return [{ tag: 'digest', attrs: {} }]
      const asked = child(node, 'key')
      if (asked) {
        const users = children(asked, 'user').flatMap(({ attrs }) => {
          const phone = phoneAt(attrs.jid ?? '')
          return phone ? [{ jid: attrs.jid ?? '', phone }] : []
        })
        const content = users.map(async ({ jid, phone }): Promise<BinaryNode> => {
          if (jid.includes(`:${computerNumber}@`)) {
            computer?.asked()
            await computer?.released
          }
          return { tag: 'user', attrs: { jid }, content: [...(await phone.bundle())] }
        })
        return [{ tag: 'list', attrs: {}, content: await Promise.all(content) }]
      }
      for (const key of children(child(node, 'list'), 'key')) {
        const value = library.getBinaryNodeChildBuffer(key, 'value')
        const keyId = library.getBinaryNodeChildUInt(key, 'id', 3)
        if (value && keyId !== undefined) device?.once.push({ keyId, key: value })
      }
      return []
    },
    usync(node) {
      const users = children(child(child(node, 'usync'), 'list'), 'user').map(({ attrs }): BinaryNode => {
        const jid = attrs.jid ?? ''
        const phone = phoneAt(jid)
        const devices = [{ tag: 'device', attrs: { id: '0' } }]
        const linked = computer ? ['1', computerNumber] : ['1']
        const ours = linked.map(id => ({ tag: 'device', attrs: { id, 'key-index': id } }))
        const list = {
          tag: 'device-list',
          attrs: {},
          content: phone === owner ? [...devices, ...ours] : devices,
        }
        return {
          tag: 'user',
          attrs: { jid },
          content: [
            { tag: 'devices', attrs: {}, content: [list] },
            ...(phone && !jid.endsWith('@lid') ? [{ tag: 'lid', attrs: { val: phone.lid } }] : []),
          ],
        }
      })
      return [{ tag: 'usync', attrs: {}, content: [{ tag: 'list', attrs: {}, content: users }] }]
    },
    'w:g2'(node) {
      const id = node.attrs.to ?? ''
      const ours = [...groups].filter(([, { hasUs }]) => hasUs).map(([one]) => one)
      if (child(node, 'participating')) return [{ tag: 'groups', attrs: {}, content: ours.map(groupNode) }]
      if (!ours.includes(id)) throw new Error('403')
      return [groupNode(id)]
    },
    // Settings that the devices of an account share: there are none.
    'w:sync:app:state'(node) {
      const asked = children(child(node, 'sync'), 'collection')
      const content = asked.map(({ attrs }) => ({
        tag: 'collection',
        attrs: { name: attrs.name ?? '', version: '0' },
      }))
      return [{ tag: 'sync', attrs: {}, content }]
    },
    'w:m': () => [
      {
        tag: 'media_conn',
        attrs: { auth: 'auth', ttl: '300' },
        content: [{ tag: 'host', attrs: { hostname: media.host, maxContentLengthBytes: '100000000' } }],
      },
    ],
    passive(_, connection) {
      // Now the device is ready for what it has missed.
      for (const node of pending) connection.send({ ...node, attrs: { ...node.attrs, offline: '1' } })
      const offline = { tag: 'offline', attrs: { count: String(pending.length) } }
      connection.send({ tag: 'ib', attrs: { from: 's.whatsapp.net' }, content: [offline] })
      current = connection
      return []
    },
  }

  const answer = async (node: BinaryNode, connection: Connection) => {
    const attrs = { id: node.attrs.id ?? '', from: node.attrs.to ?? 's.whatsapp.net' }
    if (node.attrs.type === 'result' && !child(node, 'pair-device-sign')) return
    try {
      const content =
        (await linking.answer(connection, node)) ??
        (await queries[node.attrs.xmlns ?? '']?.(node, connection)) ??
        []
      connection.send({ tag: 'iq', attrs: { ...attrs, type: 'result' }, content })
    } catch (error) {
      const code = error instanceof Error && /^\d+$/.test(error.message) ? error.message : '500'
      const refused = {
        tag: 'error',
        attrs: { code, text: code === '403' ? 'forbidden' : 'internal-server-error' },
      }
      connection.send({ tag: 'iq', attrs: { ...attrs, type: 'error' }, content: [refused] })
    }
  }

  const handle = async (node: BinaryNode, connection: Connection) => {
    const { id = '', to = '' } = node.attrs
    if (node.tag === 'iq') await answer(node, connection)
    if (node.tag === 'message') {
      const refused = await options.said(node)
      connection.send({ tag: 'ack', attrs: { class: 'message', id, from: to, t: '1', ...refused } })
    }
    const isRetry = node.tag === 'receipt' && node.attrs.type === 'retry'
    if (node.tag === 'receipt' || (node.tag === 'ack' && node.attrs.class === 'message')) {
      receipts.push(node)
      if (node.tag === 'receipt') connection.send({ tag: 'ack', attrs: { class: 'receipt', id, from: to } })
      // What could not be read is confirmed next. Only then is it sent again, because that has the same id.
      if (isRetry) unreadable.set(id, node)
      else await taken(id)
    }
    if (node.tag === 'chatstate') options.typing(to, child(node, 'composing') !== undefined)
  }

  const taken = async (id: string) => {
    confirm(id)
    const retry = unreadable.get(id)
    unreadable.delete(id)
    if (retry) await options.again(retry)
  }

  const login = (connection: Connection, payload: Uint8Array) => {
    const { devicePairingData: keys } = library.proto.ClientPayload.decode(payload)
    if (keys) {
      connection.identity = keys.eIdent ?? new Uint8Array()
      registered.set(connection, {
        identity: connection.identity,
        registrationId: Buffer.from(keys.eRegid ?? []).readUInt32BE(0),
        signed: {
          keyId: Buffer.from(keys.eSkeyId ?? []).readUIntBE(0, 3),
          key: keys.eSkeyVal ?? new Uint8Array(),
          signature: keys.eSkeySig ?? new Uint8Array(),
        },
        once: [],
      })
      linking.begin(connection)
    } else if (!device || loginFailure) {
      connection.send({ tag: 'failure', attrs: { reason: loginFailure ?? '401' } })
      connection.end()
    } else {
      // Two connections with the same keys: the older one goes.
      if (current) {
        current.send({
          tag: 'stream:error',
          attrs: {},
          content: [{ tag: 'conflict', attrs: { type: 'replaced' } }],
        })
        current.end()
      }
      current = undefined
      connection.send({ tag: 'success', attrs: { t: '1', lid: owner.lid.replace('@', ':1@') } })
    }
  }

  const accept = (socket: ServerSocket) => {
    const line = createLine(library, data => socket.send(data))
    const connection: Connection = {
      send: node => socket.send(line.encode(node)),
      end: () => socket.close(),
      identity: new Uint8Array(),
      noiseKey: new Uint8Array(),
    }
    let isIn = false
    let turn = Promise.resolve()
    connections.add(connection)
    const take = async (data: Buffer) => {
      const nodes = await line.receive(data)
      const client = line.client()
      if (client && !isIn) {
        isIn = true
        connection.noiseKey = client.noiseKey
        login(connection, client.payload)
      }
      for (const node of nodes) await handle(node, connection)
    }
    socket.on('message', data => {
      turn = turn.then(() => take(data)).catch(() => socket.terminate())
    })
    socket.on('close', () => {
      connections.delete(connection)
      if (current === connection) current = undefined
    })
  }
  const up = async () => {
    server = await listen(port, accept)
    port = server.port
  }
  await up()

  return {
    address,
    url: () => `ws://127.0.0.1:${port}/ws/chat`,
    confirm: linking.confirm,
    receipts,
    confirmed,
    pending,
    /** for phones that write to the device */
    peer: (): Peer => ({
      address,
      begin() {
        if (!device) throw new Error('no device is linked')
        return { ...device, once: device.once.shift() }
      },
    }),
    /** something for the device: at once, or when it connects */
    deliver(node: BinaryNode) {
      pending.push(node)
      current?.send(node)
    },
    /** to whoever is connected, and not kept */
    notify: (node: BinaryNode) => current?.send(node),
    isConnected: () => current !== undefined,
    /** the owner links another computer: whoever writes asks for its keys, and waits until they are released */
    linkComputer() {
      const asked = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      computer = { asked: asked.resolve, released: released.promise }
      return { asked: asked.promise, release: released.resolve }
    },
    /** the operator removes the device on the phone */
    logOut() {
      device = undefined
      const removed = { tag: 'conflict', attrs: { type: 'device_removed' } }
      current?.send({ tag: 'stream:error', attrs: { code: '401' }, content: [removed] })
      current?.end()
    },
    /** whoever logs in is refused with this from now on */
    failLogins(reason: string) {
      loginFailure = reason
      current?.end()
    },
    async down() {
      const closing = server
      server = undefined
      await closing?.close()
    },
    up,
  }
}
