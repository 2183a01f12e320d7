import { randomBytes } from 'node:crypto'
import type { BinaryNode, proto } from '../../../../host/src/plugins/channels/whatsapp/library.ts'
import { silenceCipher } from '../../../../host/src/plugins/channels/whatsapp/quiet.ts'
import type { Person, Platform, Said, Shown } from '../platform.ts'
import { loadBaileys } from './library.ts'
import { sealed, startMedia, unsealed } from './media.ts'
import { createPhone, type Phone } from './phone.ts'
import { startWhatsApp } from './server.ts'

const ann: Person = { id: '491700000501', name: 'Ann' }
const stranger: Person = { id: '491700000666', name: 'Mallory' }
const direct = `whatsapp:${ann.id}`
const roomAddress = '120363000000000001@g.us'
const room = `whatsapp:${roomAddress}`

/** A message as the phones of the people in a chat have it. */
interface Entry {
  id: string
  /** undefined: we said it */
  by: Phone | undefined
  text: string
  /** of ours: what was sent */
  sent?: proto.IMessage
  replyTo: string | undefined
  file: { name: string; bytes: number } | undefined
  reactions: string[]
}

/** What somebody said, and how the server names it. */
interface Saying {
  by: Phone
  jid: string
  message: proto.IMessage | Uint8Array
  attrs: Record<string, string>
}

/** A phone sends nothing more often than that. */
const mostResent = 5

export interface WhatsAppOptions {
  /** how many QR codes there are before the server gives up */
  refs?: number
  /** whether stanzas name people by the number that hides the phone number, and whether they tell the other one too */
  addressing?: 'lid' | 'phone' | 'lid alone'
}

/** The stand-in with an account, Ann, a stranger, and a group of them all. */
export async function openWhatsApp(options: WhatsAppOptions = {}) {
  const library = await loadBaileys()
  const unsilence = silenceCipher()
  const media = await startMedia()
  const phoneOf = ({ id, name }: Person, lid: string) =>
    createPhone(library, { number: id, name, lid: `${lid}@lid` })
  const owner = phoneOf({ id: '491700000100', name: 'Hatch' }, '70000000000100')
  const phones = [phoneOf(ann, '70000000000501'), phoneOf(stranger, '70000000000666')]
  const groups = new Map([[roomAddress, { subject: 'The others', members: new Set(phones), hasUs: true }]])
  const chats = new Map<string, Entry[]>()
  const refusals: { error: string; backoff?: string }[] = []
  const typing = new Map<string, boolean>()
  /** what people said, by its id: their phones can send it again */
  const sayings = new Map<string, Saying>()
  /** ids of what a phone sent again, because our device could not read it */
  const resent: string[] = []
  /** phones that are off, and what they will do once they are on */
  const off = new Map<Phone, (() => Promise<void>)[]>()
  let addressing = options.addressing ?? 'lid'

  const phone = ({ id }: Person): Phone => {
    const found = [...phones, owner].find(({ number }) => number === id)
    if (!found) throw new Error(`no phone ${id}`)
    return found
  }
  const phoneAt = (address: string) =>
    phones.find(one => [one.address, one.lid].includes(address.replace(/:\d+(?=@)/, '')))
  const addressIn = (jid: string) => jid.replace('whatsapp:', '')
  const chatAt = (address: string): Entry[] => {
    const key = phoneAt(address)?.number ?? address
    const found = chats.get(key) ?? []
    chats.set(key, found)
    return found
  }
  const entryIn = (jid: string, id: string): Entry => {
    const found = chatAt(addressIn(jid)).find(one => one.id === id.split('/')[0])
    if (!found) throw new Error(`no message ${id} in ${jid}`)
    return found
  }

  /** What one of the people reads of what our device sent. */
  const readBy = async (reader: Phone, node: BinaryNode): Promise<proto.IMessage> => {
    const to = library.getBinaryNodeChildren(library.getBinaryNodeChild(node, 'participants'), 'to')
    const own = to.find(({ attrs }) => phoneAt(attrs.jid ?? '') === reader)
    const [cipher] = library.getBinaryNodeChildren(own, 'enc')
    const message = cipher && (await reader.decrypt(server.address, cipher))
    const group = library.getBinaryNodeChild(node, 'enc')
    if (message?.senderKeyDistributionMessage) await reader.takeGroupKey(server.address, message)
    if (group) return reader.decryptFromGroup(node.attrs.to ?? '', server.address, group)
    if (!message) throw new Error(`nothing for ${reader.name}`)
    return message
  }

  const fileOf = async ({ documentMessage: document, imageMessage: image }: proto.IMessage) => {
    const found = document ?? image
    if (!found?.mediaKey || !found.directPath) return undefined
    const bytes = media.get(found.directPath)
    if (!bytes) throw new Error('the file was not uploaded')
    const content = await unsealed(library, document ? 'document' : 'image', found.mediaKey, bytes)
    return { name: document?.fileName ?? 'image', bytes: content.length }
  }

  /** Phones show the same id once, change what was said, and react to it. */
  const show = async (chat: Entry[], id: string, given: proto.IMessage) => {
    const message = library.normalizeMessageContent(given) ?? {}
    const { protocolMessage, reactionMessage, extendedTextMessage } = message
    const target = protocolMessage?.key?.id ?? reactionMessage?.key?.id
    const entry = chat.find(one => one.id === target)
    if (reactionMessage) return void entry?.reactions.push(reactionMessage.text ?? '')
    if (protocolMessage) {
      const text = library.normalizeMessageContent(protocolMessage.editedMessage ?? undefined)
      if (entry && !entry.by)
        entry.text = shownText(text?.extendedTextMessage?.text ?? text?.conversation ?? '')
      return
    }
    if (chat.some(one => one.id === id)) return
    chat.push({
      id,
      by: undefined,
      sent: message,
      text: shownText(extendedTextMessage?.text ?? message.conversation ?? ''),
      replyTo: extendedTextMessage?.contextInfo?.stanzaId ?? undefined,
      file: await fileOf(message),
      reactions: [],
    })
  }

  const server = await startWhatsApp({
    library,
    media,
    phones,
    owner,
    refs: options.refs ?? 6,
    groups,
    async said(node) {
      const { to = '', id = '', category } = node.attrs
      if (category === 'peer') return undefined
      const readers = to.endsWith('@g.us') ? phones : [phoneAt(to)].flatMap(one => one ?? [])
      const present = readers.filter(one => !off.has(one))
      const [first, ...others] = await Promise.all(present.map(one => readBy(one, node)))
      const refused = refusals.shift()
      if (refused) return refused
      if (groups.get(to)?.hasUs === false) return { error: '403' }
      if (others.some(one => JSON.stringify(one) !== JSON.stringify(first)))
        throw new Error('not all read the same')
      for (const one of readers) off.get(one)?.push(async () => show(chatAt(to), id, await readBy(one, node)))
      if (first) await show(chatAt(to), id, first)
      typing.set(to, false)
      return undefined
    },
    async again(receipt) {
      const { id = '' } = receipt.attrs
      const count = library.getBinaryNodeChild(receipt, 'retry')?.attrs.count ?? '1'
      const saying = sayings.get(id)
      if (!saying || Number(count) > mostResent) return
      resent.push(id)
      const { by, jid, message } = saying
      const keys = library.extractE2ESessionFromRetryReceipt(receipt) ?? undefined
      const address = addressIn(jid)
      const isInGroup = address.endsWith('@g.us') && !(message instanceof Uint8Array)
      const content = isInGroup ? { ...message, ...(await by.groupKey(address)) } : message
      const cipher = await by.encrypt(server.peer(), content, keys)
      const attempt = { ...cipher, attrs: { ...cipher.attrs, count } }
      server.deliver({ tag: 'message', attrs: saying.attrs, content: [attempt] })
    },
    typing: (to, isOn) => typing.set(phoneAt(to)?.number ?? to, isOn),
  })

  /** A stanza from somebody's phone. */
  const stanza = async (
    by: Phone,
    jid: string,
    message: proto.IMessage | Uint8Array,
    { id = newId(), ...more }: Record<string, string> = {},
  ): Promise<string> => {
    const address = addressIn(jid)
    const isGroup = address.endsWith('@g.us')
    const content =
      isGroup && !(message instanceof Uint8Array)
        ? await by.encryptForGroup(address, server.peer(), message)
        : [await by.encrypt(server.peer(), message)]
    const [named, other] = addressing === 'phone' ? [by.address, by.lid] : [by.lid, by.address]
    const word = isGroup ? 'participant' : 'sender'
    const otherKey = addressing === 'phone' ? `${word}_lid` : `${word}_pn`
    const attrs: Record<string, string> = {
      id,
      from: isGroup ? address : named,
      ...(isGroup && { participant: named }),
      ...(addressing !== 'lid alone' && { [otherKey]: other }),
      ...(isGroup && { addressing_mode: addressing === 'phone' ? 'pn' : 'lid' }),
      type: 'text',
      t: String(Math.floor(Date.now() / 1000)),
      notify: by.name,
      ...more,
    }
    sayings.set(id, { by, jid, message, attrs })
    server.deliver({ tag: 'message', attrs, content: [...content] })
    return id
  }

  const namedAs = (one: Phone) => (addressing === 'phone' ? one.address : one.lid)
  const contextOf = (jid: string, more: Said): proto.IContextInfo => {
    const answered = more.replyTo === undefined ? undefined : entryIn(jid, more.replyTo)
    return {
      ...(more.mention && { mentionedJid: [namedAs(owner)] }),
      ...(answered && {
        stanzaId: answered.id,
        participant: namedAs(answered.by ?? owner),
        quotedMessage: { conversation: answered.text },
      }),
    }
  }
  const messageFor = async (jid: string, text: string, more: Said): Promise<proto.IMessage> => {
    const said = more.mention ? `@${namedAs(owner).split('@')[0]} ${text}` : text
    const contextInfo = contextOf(jid, more)
    if (!more.file) return { extendedTextMessage: { text: said, contextInfo } }
    const file = await sealed(library, 'document', more.file.content)
    const directPath = media.put(file.bytes)
    const documentMessage = {
      ...file.media,
      directPath,
      fileName: more.file.name,
      caption: said,
      contextInfo,
    }
    return { documentWithCaptionMessage: { message: { documentMessage } } }
  }
  const change = (by: Person, jid: string, id: string, more: proto.Message.IProtocolMessage) =>
    stanza(phone(by), jid, { protocolMessage: { key: { id, fromMe: true }, ...more } })
  const { REVOKE, MESSAGE_EDIT } = library.proto.Message.ProtocolMessage.Type

  const platform = {
    settings: { server: server.url() },
    direct,
    room,
    ann,
    stranger,
    dropsRepeats: true,
    confirm: async what => void (await server.confirm(what)),
    async say(by, jid, text, more = {}) {
      const id = newId()
      const replyTo = more.replyTo?.split('/')[0]
      chatAt(addressIn(jid)).push({ id, by: phone(by), text, replyTo, file: undefined, reactions: [] })
      return stanza(phone(by), jid, await messageFor(jid, text, more), { id })
    },
    shown: async jid =>
      chatAt(addressIn(jid)).map(({ by, ...entry }): Shown => ({ ...entry, isOurs: by === undefined })),
    down: server.down,
    up: server.up,
    async close() {
      await server.down()
      await media.close()
      unsilence()
    },
    async another(number) {
      const person = { id: String(491_700_001_000 + number), name: `Person ${number}` }
      phones.push(phoneOf(person, String(70_000_000_001_000 + number)))
      return { person, jid: `whatsapp:${person.id}` }
    },
    edit: async (by, jid, id, text) =>
      void (await change(by, jid, id, { type: MESSAGE_EDIT, editedMessage: { conversation: text } })),
    remove: async (by, jid, id) => void (await change(by, jid, id, { type: REVOKE })),
    async react(by, jid, id, emoji) {
      const { by: author } = entryIn(jid, id)
      const key = { id, fromMe: author?.number === by.id, participant: namedAs(author ?? owner) }
      await stanza(phone(by), jid, { reactionMessage: { key, text: emoji } })
    },
    async rename(jid, name) {
      const address = addressIn(jid)
      const group = groups.get(address)
      if (group) group.subject = name
      server.notify({
        tag: 'notification',
        attrs: { from: address, participant: namedAs(phone(ann)), type: 'w:gp2', id: newId(), t: '1' },
        content: [{ tag: 'subject', attrs: { subject: name, s_o: namedAs(phone(ann)), s_t: '1' } }],
      })
    },
    isTyping: jid =>
      typing.get(phoneAt(`${addressIn(jid)}@s.whatsapp.net`)?.number ?? addressIn(jid)) === true,
    refuse(times, how) {
      for (let i = 0; i < times; i++)
        refusals.push(how === 'limit' ? { error: '429', backoff: '1' } : { error: '500' })
    },
    async repeat() {
      for (const node of server.confirmed.splice(0)) server.deliver(node)
    },

    /** the first comes from a phone that had no line for a minute */
    async swap(by, jid, [first, second]) {
      await platform.say(by, jid, second)
      const late = { t: String(Math.floor(Date.now() / 1000) - 60) }
      await stanza(phone(by), jid, { conversation: first }, late)
    },
    async forge(text) {
      const said = await messageFor(room, text, { mention: true })
      await stanza(phone(stranger), room, said, { notify: ann.name })
    },

    // What is special to WhatsApp.
    server,
    resent,
    /** somebody's phone reads nothing until the result is called; what its owner says is sent all the same */
    switchOff(person: Person) {
      const waiting: (() => Promise<void>)[] = []
      off.set(phone(person), waiting)
      return async () => {
        off.delete(phone(person))
        for (const work of waiting) await work()
      }
    },
    media,
    groups,
    owner,
    library,
    refusals,
    /** any content, from any of the people; `attributes` are what the server says of it */
    post: (
      by: Person,
      jid: string,
      message: proto.IMessage | Uint8Array,
      attributes: Record<string, string> = {},
    ) => stanza(phone(by), jid, message, attributes),
    /** of ours, as it was sent */
    sent: (jid: string) => chatAt(addressIn(jid)).flatMap(({ sent }) => (sent ? [sent] : [])),
    /** a file that people can be said to have sent */
    async upload(kind: 'document' | 'image' | 'audio', content: Buffer) {
      const file = await sealed(library, kind, content)
      return { ...file.media, directPath: media.put(file.bytes) }
    },
    phone,
    address(next: NonNullable<WhatsAppOptions['addressing']>) {
      addressing = next
    },
  } satisfies Platform & Record<string, unknown>
  return platform
}

const newId = () => `3A${randomBytes(9).toString('hex').toUpperCase()}`

/** WhatsApp's signs are not shown, except within a block, where nothing else is a sign. */
function shownText(text: string): string {
  return text
    .split('```')
    .map((part, i) =>
      i % 2 === 1
        ? part
        : part.replace(/(?<![\p{L}\p{N}])([*_~`])(?=\S)(.+?)(?<=\S)\1(?![\p{L}\p{N}])/gu, '$2'),
    )
    .join('')
    .replaceAll('\u200b', '')
}
