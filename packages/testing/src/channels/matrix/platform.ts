import { EventType, KnownMembership, type MatrixEvent, Preset, RelationType, Visibility } from 'matrix-js-sdk'
import { until } from '../../until.ts'
import type { Person, Platform, Said, Shown } from '../platform.ts'
import { type MatrixPerson, openPerson, password, register } from './people.ts'
import { startProxy } from './proxy.ts'
import { type Synapse, startSynapse } from './synapse.ts'

/** The homeserver and the people of a test file. */
export interface MatrixWorld {
  synapse: Synapse
  url: string
  ann: MatrixPerson
  stranger: MatrixPerson
  close(): Promise<void>
}

export async function openWorld(): Promise<MatrixWorld> {
  const synapse = await startSynapse()
  const proxy = await startProxy(synapse.socket)
  const url = proxy.url()
  const close = async () => {
    await proxy.down()
    await synapse.stop()
  }
  try {
    const people = [openPerson(url, 'ann', 'Ann'), openPerson(url, 'mallory', 'Mallory')] as const
    const [ann, stranger] = await Promise.all(people)
    return {
      synapse,
      url,
      ann,
      stranger,
      async close() {
        await Promise.all([ann.close(), stranger.close()])
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const jidOf = (room: string) => `matrix:${room}`
const roomIn = (jid: string) => jid.replace('matrix:', '')
const encryption = {
  type: EventType.RoomEncryption,
  state_key: '',
  content: { algorithm: 'm.megolm.v1.aes-sha2' },
}
/** What a card says its reactions mean, line by line; of a question, its options. */
function legendOf(text: string): { emoji: string; label: string }[] {
  const isQuestion = /^Answer with a number/m.test(text)
  return text.split('\n').flatMap(line => {
    const [, sign = '', label = ''] = /^(✅|♾️|❌|\d(?=\. )) ?\.? ?(.+)$/.exec(line) ?? []
    if (label === '' || (/\d/.test(sign) && !isQuestion)) return []
    return { emoji: /\d/.test(sign) ? `${sign}\ufe0f\u20e3` : sign, label }
  })
}
let bots = 0

/** A room that Ann makes, with the bot invited. */
export async function makeRoom(
  { ann, stranger }: MatrixWorld,
  bot: string,
  options: { name?: string; isEncrypted?: boolean; withStranger?: boolean } = {},
): Promise<string> {
  const { room_id } = await ann.client.createRoom({
    visibility: Visibility.Private,
    preset: Preset.PrivateChat,
    is_direct: options.name === undefined,
    ...(options.name !== undefined && { name: options.name }),
    invite: [bot, ...(options.withStranger ? [stranger.id] : [])],
    initial_state: options.isEncrypted ? [encryption] : [],
  })
  if (options.withStranger) await stranger.client.joinRoom(room_id)
  await until(() => ann.client.getRoom(room_id)?.getMember(bot) != null)
  if (options.isEncrypted) await until(() => ann.client.getRoom(room_id)?.hasEncryptionStateEvent() === true)
  return room_id
}

/** An account of the assistant's own, a chat with Ann that is encrypted, and a room that is not, or the other way round. */
export async function openMatrix(
  world: MatrixWorld,
  options: { isRoomEncrypted?: boolean; settings?: Record<string, unknown> } = {},
) {
  const { ann, stranger } = world
  const { isRoomEncrypted = false } = options
  const proxy = await startProxy(world.synapse.socket)
  const bot = await register(world.url, `hatch${++bots}`, 'Hatch')
  const [direct, room] = await Promise.all([
    makeRoom(world, bot.user_id, { isEncrypted: !isRoomEncrypted }),
    makeRoom(world, bot.user_id, { name: 'The others', isEncrypted: isRoomEncrypted, withStranger: true }),
  ])
  const inviters = [ann.id]
  /** by their chats */
  const others = new Map<string, MatrixPerson>()
  const personOf = ({ id }: Person): MatrixPerson =>
    [stranger, ...others.values()].find(one => one.id === id) ?? ann

  /** An app that does not know the assistant's device yet would encrypt without it. */
  const isReadable = async (by: MatrixPerson, id: string) => {
    if (!by.client.getRoom(id)?.hasEncryptionStateEvent()) return
    const crypto = by.client.getCrypto()
    await until(async () => {
      const devices = (await crypto?.getUserDeviceInfo([bot.user_id], true))?.get(bot.user_id)
      const trusted = [...(devices?.keys() ?? [])].map(device =>
        crypto?.getDeviceVerificationStatus(bot.user_id, device),
      )
      return (await Promise.all(trusted)).some(status => status?.signedByOwner === true)
    })
  }
  const relationOf = (more: Said, root: string | undefined) => {
    if (root !== undefined)
      return {
        rel_type: RelationType.Thread,
        event_id: root,
        is_falling_back: true,
        'm.in_reply_to': { event_id: root },
      }
    return more.replyTo === undefined ? undefined : { 'm.in_reply_to': { event_id: more.replyTo } }
  }
  const contentOf = async (by: MatrixPerson, id: string, text: string, more: Said): Promise<object> => {
    // What begins a thread is a notice: nobody hears it.
    const root =
      more.thread === 'new'
        ? await by.post(id, 'm.room.message', { msgtype: 'm.notice', body: 'A thread' })
        : more.thread
    const relation = relationOf(more, root)
    return {
      msgtype: more.file ? 'm.file' : 'm.text',
      body: more.mention ? `Hatch: ${text}` : text,
      'm.mentions': more.mention ? { user_ids: [bot.user_id] } : {},
      ...(more.file && (await by.attach(id, more.file))),
      ...(relation && { 'm.relates_to': relation }),
    }
  }

  const ours = (event: MatrixEvent) => event.getSender() === bot.user_id
  const shownOf = async (event: MatrixEvent, events: readonly MatrixEvent[]): Promise<Shown> => {
    const content = event.getContent()
    const relation = event.getWireContent()['m.relates_to'] ?? {}
    const reactions = events.filter(
      one =>
        one.getType() === EventType.Reaction &&
        !one.isRedacted() &&
        one.getRelation()?.event_id === event.getId(),
    )
    const text = String(content.filename === content.body ? '' : content.body)
    const isFile = content.url !== undefined || content.file !== undefined
    return {
      id: event.getId() ?? '',
      isOurs: ours(event),
      text,
      buttons: reactions.filter(ours).flatMap(one => {
        const found = legendOf(text).find(({ emoji }) => emoji === one.getRelation()?.key)
        return found ? [found.label] : []
      }),
      thread: relation.rel_type === RelationType.Thread ? relation.event_id : undefined,
      replyTo: relation['m.in_reply_to']?.event_id,
      file: isFile ? { name: String(content.filename), bytes: await ann.measure(content) } : undefined,
      reactions: reactions.map(one => String(one.getRelation()?.key)),
    }
  }

  const lookAt = async (jid: string): Promise<readonly Shown[]> => {
    const events = (await (others.get(jid) ?? ann).room(roomIn(jid))).getLiveTimeline().getEvents()
    const messages = events.filter(
      one =>
        one.getType() === EventType.RoomMessage &&
        !one.isRedacted() &&
        one.getRelation()?.rel_type !== RelationType.Replace,
    )
    return Promise.all(messages.map(one => shownOf(one, events)))
  }

  const platform = {
    settings: {
      server: proxy.url(),
      user: bot.user_id,
      password,
      inviters,
      ...options.settings,
    },
    direct: jidOf(direct),
    room: jidOf(room),
    ann: { id: ann.id, name: ann.name },
    stranger: { id: stranger.id, name: stranger.name },
    dropsRepeats: true,
    async say(by, jid, text, more = {}) {
      const person = personOf(by)
      await isReadable(person, roomIn(jid))
      return person.post(roomIn(jid), 'm.room.message', await contentOf(person, roomIn(jid), text, more))
    },
    async shown(jid) {
      let seen: readonly Shown[] = []
      await until(async () => {
        seen = await lookAt(jid)
        // Buttons are put under a card one after the other.
        return seen.every(
          ({ isOurs, text, buttons = [] }) => !isOurs || buttons.length >= legendOf(text).length,
        )
      })
      return seen
    },
    down: proxy.down,
    up: proxy.up,
    async close() {
      for (const person of others.values()) await person.close()
      await proxy.down()
    },
    /** every other one is encrypted */
    async another(number) {
      const made = await openPerson(world.url, `person${number}-${bots}`, `Person ${number}`)
      inviters.push(made.id)
      const isEncrypted = number % 2 === 0
      const jid = jidOf(await makeRoom({ ...world, ann: made }, bot.user_id, { isEncrypted }))
      others.set(jid, made)
      return { person: { id: made.id, name: made.name }, jid }
    },
    async press(by, jid, id, label) {
      const found = (await platform.shown(jid)).find(one => one.id === id)
      const button = legendOf(found?.text ?? '').find(one => one.label === label)
      if (!button) throw new Error(`no button ${label}`)
      await platform.react(by, jid, id, button.emoji)
    },
    async edit(by, jid, id, text) {
      await personOf(by).post(roomIn(jid), 'm.room.message', {
        msgtype: 'm.text',
        body: `* ${text}`,
        'm.new_content': { msgtype: 'm.text', body: text },
        'm.relates_to': { rel_type: RelationType.Replace, event_id: id },
      })
    },
    async remove(by, jid, id) {
      await personOf(by).client.redactEvent(roomIn(jid), id)
    },
    async react(by, jid, id, emoji) {
      await personOf(by).post(roomIn(jid), 'm.reaction', {
        'm.relates_to': { rel_type: RelationType.Annotation, event_id: id, key: emoji },
      })
    },
    async rename(jid, name) {
      await ann.client.setRoomName(roomIn(jid), name)
    },
    isTyping: jid => ann.client.getRoom(roomIn(jid))?.getMember(bot.user_id)?.typing === true,
    refuse(times, how) {
      let left = times
      proxy.intercept = ({ method, path }) => {
        if (method !== 'PUT' || !path.includes('/send/') || left === 0) return undefined
        left--
        return how === 'limit'
          ? {
              status: 429,
              body: { errcode: 'M_LIMIT_EXCEEDED', error: 'Too Many Requests', retry_after_ms: 300 },
            }
          : { status: 502, body: {} }
      }
    },
    async repeat() {
      const before = proxy.asked.find(({ path }) => path.includes('/sync?') && path.includes('since='))
      const since = new URL(before?.path ?? '/', 'http://host').searchParams.get('since')
      proxy.rewrite = path => {
        if (since === null || !path.includes('/sync?')) return path
        proxy.rewrite = undefined
        return path.replace(/since=[^&]+/, `since=${encodeURIComponent(since)}`)
      }
    },

    async forge(text) {
      const { client } = stranger
      const content = { membership: KnownMembership.Join, displayname: ann.name }
      await client.sendStateEvent(room, EventType.RoomMember, content, stranger.id)
      await platform.say(platform.stranger, jidOf(room), text, { mention: true })
    },

    // What is special to Matrix.
    world,
    proxy,
    bot,
    directRoom: direct,
    otherRoom: room,
  } satisfies Platform & Record<string, unknown>
  return platform
}
