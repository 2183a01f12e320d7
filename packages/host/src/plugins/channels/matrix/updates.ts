import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChannelHost, Incoming } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { createFailures } from '../failures.ts'
import { type Press, pressIn, recallCard } from './buttons.ts'
import { type Client, MatrixRefusal } from './client.ts'
import { type Crypto, Unreadable } from './crypto.ts'
import { BrokenFile, decryptFile } from './encrypted-file.ts'
import { type Event, eventIn, text } from './events.ts'
import type { ReplacedRooms } from './replaced.ts'
import { createReplays } from './replays.ts'
import type { Room, Rooms } from './rooms.ts'
import { answeredTo, changeIn, reactionIn, type Said, saidIn, threadOf } from './said.ts'

export interface UpdateOptions {
  host: ChannelHost
  client: Client
  crypto: Crypto
  rooms: Rooms
  replaced: ReplacedRooms
  us: string
  /** a message that cannot be read for now, and why */
  unreadable(room: string, raw: object, by: string, reason: string): void
  log: Logger
}

/** What the events of rooms mean to the host. Resolves once it is stored or refused. */
export interface Updates {
  take(room: string, event: Event, raw: object): Promise<void>
}

const messages: ReadonlySet<string> = new Set(['m.room.message', 'm.sticker'])

export function createUpdates(options: UpdateOptions): Updates {
  const { host, crypto, rooms, us, log } = options
  const hear = createHearing(options)
  const replays = createReplays(host)

  const react = async (room: Room, event: Event) => {
    const reaction = reactionIn(event.content)
    if (!reaction) return
    const by = personIn(room, event.sender)
    const card = recallCard(host, reaction.to)
    const press = card && pressIn(card, reaction.emoji)
    // The room may have been encrypted since: a reaction, which is not, decides nothing any more.
    const counts = press && !('decision' in press && room.isEncrypted)
    if (card && counts) await pressed(by, card.id, press)
    else await host.reacted({ ...by, ...reaction })
  }
  const pressed = async (by: Person, id: string, press: Press) => {
    const outcome =
      'option' in press
        ? await host.choose({ ...by, id, question: 1, answer: press })
        : await host.decide({ ...by, id, ...press })
    // Matrix has no answer that only one person sees.
    if (!outcome.ok)
      log.info({ sender: by.sender, reason: outcome.error.message }, 'a reaction decided nothing')
  }

  const redact = async (room: Room, { sender, redacts, content }: Event) => {
    const externalId = text(content.redacts) ?? redacts
    if (externalId !== undefined) await host.changed({ ...personIn(room, sender), externalId, text: null })
  }

  const readable = async (room: string, event: Event, raw: object): Promise<Event | undefined> => {
    if (event.type !== 'm.room.encrypted') return event
    try {
      const decrypted = eventIn(await crypto.decrypt(room, raw))
      return decrypted && messages.has(decrypted.type) ? decrypted : undefined
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      options.unreadable(room, raw, event.sender, error.message)
      return undefined
    }
  }

  return {
    async take(id, given, raw) {
      // As an ordinary event anybody could send it; as the room's state only those who may.
      if (given.type === 'm.room.tombstone')
        return given.state_key === '' ? options.replaced.announced(id, given) : undefined
      if (given.state_key !== undefined || given.sender === us) return
      const event = await readable(id, given, raw)
      if (!event) return
      const room = await rooms.get(id)
      host.knows(room.chat)
      if (event.type === 'm.reaction') return react(room, event)
      if (event.type === 'm.room.redaction') return redact(room, event)
      if (!messages.has(event.type)) return
      // Whoever runs the server could have written it.
      if (room.isEncrypted && given.type !== 'm.room.encrypted')
        return log.warn(
          { room: id, sender: event.sender },
          'a message in an encrypted room was not encrypted; it is not heard',
        )
      if (room.isEncrypted) await replays.once(raw, () => hear(room, event))
      else await hear(room, event)
    },
  }
}

type Person = Pick<Incoming, 'jid' | 'sender' | 'senderName'>
const personIn = (room: Room, sender: string): Person => ({
  jid: room.chat.jid,
  sender,
  senderName: room.nameOf(sender),
})

/** What somebody said, or said instead. */
function createHearing({ host, client, crypto, us }: UpdateOptions) {
  /** Fetched only where the host wants it: strangers cause no traffic. */
  const contentOf = ({ from }: NonNullable<Said['file']>) =>
    typeof from === 'string' ? client.download(from) : decryptFile(from, client.download(from.url))

  const failures = createFailures()

  /** The file, or a line that says why it is missing. */
  const takeFile = async (by: Person, file: NonNullable<Said['file']>): Promise<Attachment | string> => {
    try {
      const taken = await host.takeFile(by, { name: file.name, content: contentOf(file) })
      return taken.ok ? taken.attachment : `[${file.name} was not taken: ${taken.error.message}]`
    } catch (error) {
      const isLost = error instanceof BrokenFile || (error instanceof MatrixRefusal && error.isFinal)
      // Anything else may be over soon: the message is fetched once more. A server that stays down holds up nobody for long.
      if (!isLost && !failures.isLast(by)) throw error
      return `[${file.name} was not taken: ${error instanceof Error ? error.message : String(error)}]`
    }
  }

  /** What a message says; undefined: it is gone, or cannot be trusted to be its sender's. */
  const bodyOf = async (room: Room, raw: object & { type?: unknown }): Promise<string | undefined> => {
    const isEncrypted = raw.type === 'm.room.encrypted'
    if (room.isEncrypted && !isEncrypted) return undefined
    try {
      return text(eventIn(isEncrypted ? await crypto.decrypt(room.id, raw) : raw)?.content.body)
    } catch (error) {
      if (error instanceof Unreadable) return undefined
      throw error
    }
  }
  const answered = async (room: Room, id: string | undefined) => {
    if (id === undefined) return undefined
    const path = ['v3', 'rooms', room.id, 'event', id]
    try {
      const raw = await client.ask(z.record(z.string(), z.unknown()), 'GET', path)
      const sender = text(raw.sender)
      const quote = { id, senderName: sender && room.nameOf(sender), text: await bodyOf(room, raw) }
      return { isOurs: sender === us, quote }
    } catch (error) {
      if (!(error instanceof MatrixRefusal && error.isFinal)) throw error
      return { isOurs: false, quote: { id } }
    }
  }

  return async (room: Room, { type, event_id, sender, content, origin_server_ts }: Event) => {
    const by = personIn(room, sender)
    const ourselves = { id: us, name: room.nameOf(us) }
    const change = changeIn(content)
    if (change) {
      const said = saidIn(type, change.content, ourselves)
      if (said) await host.changed({ ...by, externalId: change.id, text: said.text })
      return
    }
    const said = saidIn(type, content, ourselves)
    if (!said) return
    const file = said.file && (await takeFile(by, said.file))
    const quoted = await answered(room, answeredTo(content))
    await host.receive({
      ...by,
      externalId: event_id,
      text: [said.text, typeof file === 'string' ? file : undefined].filter(Boolean).join('\n'),
      ...(typeof file === 'object' && { attachments: [file] }),
      at: origin_server_ts,
      mentioned: said.isMention || quoted?.isOurs === true,
      thread: threadOf(content),
      quote: quoted?.quote,
    })
  }
}
