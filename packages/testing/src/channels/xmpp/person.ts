import { randomUUID } from 'node:crypto'
import { layoutOf } from '../../../../host/src/base/layout.ts'
import { createLibrary } from '../../../../host/src/plugins/channels/library.ts'
import {
  type Archived,
  type Archives,
  createArchives,
} from '../../../../host/src/plugins/channels/xmpp/archive.ts'
import { createFiles } from '../../../../host/src/plugins/channels/xmpp/files.ts'
import { xmpp } from '../../../../host/src/plugins/channels/xmpp/kind.ts'
import type { Child, Element, XmppLibrary } from '../../../../host/src/plugins/channels/xmpp/library.ts'
import { openSession, type Session } from '../../../../host/src/plugins/channels/xmpp/session.ts'
import { bareOf, ns, resourceOf } from '../../../../host/src/plugins/channels/xmpp/stanzas.ts'
import { until } from '../../until.ts'
import type { Prosody } from './prosody.ts'

/** Somebody with an XMPP app: it connects when it is needed, and again after the server was away. */
export interface XmppPerson {
  address: string
  nickname: string
  /** everything that has arrived, oldest first */
  seen: readonly Element[]
  session(): Promise<Session>
  /** what the archive of the account or of a room keeps */
  archive(of: string, other?: string): Promise<readonly Archived[]>
  /** the message as it was sent, or as the room passed it on */
  say(to: string, type: 'chat' | 'groupchat', id: string | undefined, ...children: Child[]): Promise<Element>
  /** enters a room, and does so again on every connection; who creates it owns it */
  join(room: string, nickname?: string): Promise<void>
  leave(room: string): Promise<void>
  /** its settings, by their names in the form of XEP-0045 */
  configure(room: string, settings: Record<string, string>): Promise<void>
  upload(name: string, content: Buffer): Promise<string>
  close(): Promise<void>
}

export function createPerson(server: Prosody, name: string, nickname = name): XmppPerson {
  const address = `${name}@${server.domain}`
  const password = `${name}-secret`
  server.addAccount(name, password)
  const rooms = new Map<string, string>()
  const seen: Element[] = []
  const leaving = new AbortController()
  const library = createLibrary(layoutOf('/nowhere'), xmpp)
  let opened: Promise<{ session: Session; archives: Archives }> | undefined

  const enter = async (session: Session, room: string, as: string) => {
    const { xml } = session
    const before = seen.length
    const history = xml('history', { maxstanzas: '0' })
    await session.send(xml('presence', { to: `${room}/${as}` }, xml('x', { xmlns: ns.muc }, history)))
    await until(() =>
      seen.slice(before).some(one => one.name === 'presence' && one.attrs.from === `${room}/${as}`),
    )
  }

  const open = async () => {
    const memory = { recall: () => undefined, remember: () => {} }
    let archives: Archives | undefined
    const receive = (stanza: Element) => {
      if (archives?.takes(stanza)) return
      seen.push(stanza)
      const from = stanza.attrs.from ?? ''
      if (stanza.attrs.type === 'groupchat' && resourceOf(from) === rooms.get(bareOf(from)))
        void opened?.then(({ session }) => session.reflected(stanza))
    }
    const session = await openSession({
      ...{ library: await library<XmppLibrary>('@xmpp/client'), address, password, features: [] },
      ...{ server: `127.0.0.1:${server.port}`, receive, signal: leaving.signal },
    })
    archives = createArchives(session, memory, Date.now)
    session.ended.catch(() => {
      opened = undefined
    })
    await session.send(session.xml('presence'))
    for (const [room, as] of rooms) await enter(session, room, as)
    return { session, archives }
  }
  const line = () => {
    opened ??= open()
    return opened
  }
  const session = async () => (await line()).session

  return {
    address,
    nickname,
    seen,
    session,
    async archive(of, other) {
      const { archives } = await line()
      const all: Archived[] = []
      for (;;) {
        const after = all.at(-1)?.id
        const { items, isComplete } = await archives.page({ of, with: other, after })
        all.push(...items)
        if (isComplete || items.length === 0) return all
      }
    },
    async say(to, type, id = randomUUID(), ...children) {
      const here = await session()
      const message = here.xml('message', { to, type, id }, ...children)
      return (await here.deliver(message, type === 'groupchat')) ?? message
    },
    async join(room, as = nickname) {
      const here = await session()
      rooms.set(room, as)
      await enter(here, room, as)
    },
    async leave(room) {
      const { send, xml } = await session()
      await send(xml('presence', { to: `${room}/${rooms.get(room)}`, type: 'unavailable' }))
      rooms.delete(room)
    },
    async configure(room, settings) {
      const { ask, xml } = await session()
      const all = { FORM_TYPE: 'http://jabber.org/protocol/muc#roomconfig', ...settings }
      const fields = Object.entries(all).map(([key, value]) =>
        xml('field', { var: key }, xml('value', {}, value)),
      )
      const form = xml('x', { xmlns: ns.form, type: 'submit' }, fields)
      await ask('set', room, xml('query', { xmlns: 'http://jabber.org/protocol/muc#owner' }, form))
    },
    async upload(file, content) {
      const sent = await createFiles(await session(), leaving.signal).upload(file, 'image/png', content)
      if ('refused' in sent) throw new Error(sent.refused)
      return sent.url
    },
    async close() {
      leaving.abort()
      await (await opened?.catch(() => undefined))?.session.close()
    },
  }
}
