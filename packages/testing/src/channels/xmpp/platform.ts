import { randomUUID } from 'node:crypto'
import type { Archived } from '../../../../host/src/plugins/channels/xmpp/archive.ts'
import type { Child, Element } from '../../../../host/src/plugins/channels/xmpp/library.ts'
import { archiveIdOf, bareOf, externalIdOf, ns } from '../../../../host/src/plugins/channels/xmpp/stanzas.ts'
import type { Person, Platform, Said, Shown } from '../platform.ts'
import { createPerson, type XmppPerson } from './person.ts'
import { type ProsodyOptions, startProsody } from './prosody.ts'

/** A real Prosody with the assistant's account, Ann, a stranger, and a room that both are in. */
export async function openXmpp(options: ProsodyOptions & { showsAddresses?: boolean } = {}) {
  const server = await startProsody(options)
  const hatch = `hatch@${server.domain}`
  server.addAccount('hatch', 'hatch-secret')
  const place = `others@${server.rooms}`
  const annsApp = createPerson(server, 'ann')
  const mallorysApp = createPerson(server, 'mallory')
  const people = [annsApp, mallorysApp]
  const close = async () => {
    await Promise.all(people.map(person => person.close()))
    await server.close()
  }
  try {
    for (const person of people) await person.join(place)
    // Saved at once: the server may be killed.
    await annsApp.configure(place, {
      'muc#roomconfig_persistentroom': '1',
      'muc#roomconfig_roomname': 'The others',
      'muc#roomconfig_whois': (options.showsAddresses ?? true) ? 'anyone' : 'moderators',
    })
  } catch (error) {
    await close()
    throw error
  }
  const ann: Person = { id: annsApp.address, name: 'ann' }
  const stranger: Person = { id: mallorysApp.address, name: 'mallory' }
  const direct = `xmpp:${ann.id}`
  const room = `xmpp:${place}`
  const said: { by: XmppPerson; message: Element }[] = []

  const appOf = ({ id }: Person): XmppPerson => {
    const found = people.find(one => one.address === id)
    if (!found) throw new Error(`no such person: ${id}`)
    return found
  }
  /** Whoever writes in a chat of two writes to the assistant. */
  const write = async (by: XmppPerson, jid: string, id: string | undefined, ...children: Child[]) => {
    const isRoom = jid === room
    const message = await by.say(isRoom ? place : hatch, isRoom ? 'groupchat' : 'chat', id, ...children)
    if (!isRoom) said.push({ by, message })
    return externalIdOf(message, archiveIdOf(message, place), isRoom) ?? ''
  }
  const childrenFor = async (by: XmppPerson, jid: string, text: string, more: Said): Promise<Child[]> => {
    const { xml } = await by.session()
    const quote = more.replyTo === undefined ? '' : '> before\n'
    const words = more.mention && jid === room ? `hatch: ${text}` : text
    const url = more.file && (await by.upload(more.file.name, more.file.content))
    return [
      xml('body', {}, quote + words),
      more.replyTo !== undefined && [
        xml('reply', { xmlns: ns.reply, id: more.replyTo, to: jid === room ? `${place}/hatch` : hatch }),
        xml(
          'fallback',
          { xmlns: ns.fallback, for: ns.reply },
          xml('body', { start: '0', end: String(quote.length) }),
        ),
      ],
      more.thread !== undefined && xml('thread', {}, more.thread === 'new' ? randomUUID() : more.thread),
      url !== undefined && xml('x', { xmlns: ns.oob }, xml('url', {}, url)),
    ]
  }

  const shown = async (jid: string) => {
    const isRoom = jid === room
    const app = people.find(({ address }) => jid === `xmpp:${address}`) ?? annsApp
    const items = await app.archive(isRoom ? place : app.address, isRoom ? undefined : hatch)
    return shownOf(items, isRoom, from => (isRoom ? from === `${place}/hatch` : bareOf(from) === hatch))
  }

  const platform = {
    settings: {
      ...{ address: hatch, password: 'hatch-secret', server: `127.0.0.1:${server.port}` },
      ...{ rooms: [place], nickname: 'hatch' },
    },
    direct,
    room,
    ann,
    stranger,
    dropsRepeats: true,
    say: async (by, jid, text, more = {}) =>
      write(appOf(by), jid, undefined, ...(await childrenFor(appOf(by), jid, text, more))),
    shown,
    isDownForAll: true,
    down: server.kill,
    up: server.start,
    close,
    async another(number) {
      const app = createPerson(server, `person${number}`)
      people.push(app)
      return { person: { id: app.address, name: app.nickname }, jid: `xmpp:${app.address}` }
    },
    async edit(by, jid, id, text) {
      const { xml } = await appOf(by).session()
      const replace = xml('replace', { xmlns: ns.correct, id })
      await write(appOf(by), jid, undefined, xml('body', {}, text), replace)
    },
    async remove(by, jid, id) {
      const { xml } = await appOf(by).session()
      const store = xml('store', { xmlns: ns.hints })
      await write(appOf(by), jid, undefined, xml('retract', { xmlns: ns.retract, id }), store)
    },
    async react(by, jid, id, emoji) {
      const { xml } = await appOf(by).session()
      const reaction = xml('reactions', { xmlns: ns.reactions, id }, xml('reaction', {}, emoji))
      await write(appOf(by), jid, undefined, reaction, xml('store', { xmlns: ns.hints }))
    },
    isTyping: () => {
      const states = annsApp.seen.flatMap(one =>
        bareOf(one.attrs.from ?? '') === hatch
          ? one.getChildElements().filter(child => child.getNS() === ns.chatStates)
          : [],
      )
      return states.at(-1)?.name === 'composing'
    },
    refuse: server.refuse,
    /** The same message once more, as servers send it that are not sure whether it arrived. */
    async repeat() {
      for (const { by, message } of said) await (await by.session()).deliver(message, false)
    },

    /** with what a server would say of her */
    async forge(text) {
      const { xml } = await mallorysApp.session()
      const item = xml('item', { jid: `${ann.id}/phone`, affiliation: 'owner' })
      const vouched = xml('x', { xmlns: ns.mucUser }, item)
      await write(mallorysApp, room, undefined, xml('body', {}, `hatch: ${text}`), vouched)
    },

    // What is special to XMPP.
    server,
    hatch,
    place,
    annsApp,
    mallorysApp,
    write,
    /** ends with the platform */
    add(person: XmppPerson) {
      people.push(person)
      return person
    },
  } satisfies Platform & Record<string, unknown>
  return platform
}

async function fileAt(url: string): Promise<{ name: string; bytes: number }> {
  const content = await (await fetch(url)).arrayBuffer()
  return { name: decodeURIComponent(url.split('/').at(-1) ?? ''), bytes: content.byteLength }
}

/** What an app makes of the archive: corrections, reactions and what was taken back are no messages of their own. */
async function shownOf(
  items: readonly Archived[],
  isRoom: boolean,
  isOurs: (from: string) => boolean,
): Promise<readonly Shown[]> {
  const all: (Shown & { own: string | undefined; reactions: string[] })[] = []
  for (const { id, message } of items) {
    const text = message.getChildText('body') ?? ''
    const replaced = message.getChild('replace', ns.correct)?.attrs.id
    const reactions = message.getChild('reactions', ns.reactions)
    const target = all.find(one => one.own === replaced || one.id === reactions?.attrs.id)
    if (replaced !== undefined && target) target.text = text
    else if (reactions)
      target?.reactions.splice(0, 9, ...reactions.getChildren('reaction').map(one => one.text()))
    else if (text !== '') {
      const url = message.getChild('x', ns.oob)?.getChildText('url')
      all.push({
        id: externalIdOf(message, id, isRoom) ?? '',
        own: message.attrs.id,
        isOurs: isOurs(message.attrs.from ?? ''),
        text,
        thread: message.getChildText('thread') ?? undefined,
        replyTo: message.getChild('reply', ns.reply)?.attrs.id,
        file: url ? await fileAt(url) : undefined,
        reactions: [],
      })
    }
  }
  return all
}
