import type { ChannelHost, Incoming } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { callIn } from '../nickname.ts'
import { DownloadFailure, type Files } from './files.ts'
import type { IdSource, Ids } from './ids.ts'
import type { Element } from './library.ts'
import type { Room } from './rooms.ts'
import { type Content, contentOf, externalIdOf, jidOf, resourceOf } from './stanzas.ts'

/** Something that somebody said, and who they are. */
interface Said {
  message: Element
  /** the address of the person or of the room */
  chat: string
  room: Room | undefined
  sender: string
  senderName: string
  /** the archive's id of it */
  archived: string | undefined
  at: number
}

export interface Hearing {
  /** resolves once it is stored, or refused */
  hear(said: Said): Promise<void>
}

const longestReason = 500

export function createHearing(options: {
  host: ChannelHost
  ids: Ids
  source: IdSource
  files: Files
  /** this person is heard in a chat of two */
  accepted(person: string): void
  /** somebody who is heard wants us in a room */
  invited(room: string): void
}): Hearing {
  const { host, ids, source } = options

  /** The file, or a line that says why it is missing. */
  const takeFile = async (
    by: Pick<Incoming, 'jid' | 'sender'>,
    url: string,
  ): Promise<Attachment | string> => {
    const name = nameIn(url)
    try {
      const taken = await host.takeFile(by, { name, content: options.files.download(url) })
      return taken.ok ? taken.attachment : `[${name} was not taken: ${taken.error.message}]`
    } catch (error) {
      if (!(error instanceof DownloadFailure)) throw error
      return `[${name} was not taken: ${error.message}]`
    }
  }

  const words = async (said: Said, content: Content & { kind: 'words' }) => {
    const { chat, room, sender, senderName, at } = said
    const jid = jidOf(chat)
    const taken: (Attachment | string)[] = []
    for (const url of content.files) taken.push(await takeFile({ jid, sender }, url))
    const attachments = taken.filter(one => typeof one !== 'string')
    const problems = taken.filter(one => typeof one === 'string')
    const called = room ? callIn(content.text, room.nickname) : { isCall: false, text: content.text }
    const { answers } = content
    const isAnswerToUs = answers?.by === (room ? `${room.address}/${room.nickname}` : source.me)
    const isMention =
      called.isCall || isAnswerToUs || content.mentions.some(uri => uri === `xmpp:${source.me}`)
    const externalId = externalIdOf(said.message, said.archived, room !== undefined)
    const received = await host.receive({
      ...{ jid, sender, senderName, at },
      ...(externalId !== undefined && { externalId }),
      text: [called.text, ...problems].filter(Boolean).join('\n'),
      ...(attachments.length > 0 && { attachments }),
      mentioned: isMention,
      thread: content.thread,
      quote: answers && {
        id: answers.id,
        senderName: (room ? resourceOf(answers.by) : undefined) || undefined,
        text: answers.text,
      },
    })
    ids.note(chat, sender, said.message, externalId)
    if (received.ok && !room) options.accepted(sender)
  }

  const invitation = async (said: Said, { room, reason }: Content & { kind: 'invitation' }) => {
    const { chat, sender, senderName, at, message, archived } = said
    // A room could claim that anybody invites us to it; a person cannot.
    if (said.room) return
    const externalId = externalIdOf(message, archived, false)
    const received = await host.receive({
      ...{ jid: jidOf(chat), sender, senderName, at },
      ...(externalId !== undefined && { externalId }),
      text: `[invites you to the room ${room}${reason && `: ${reason.slice(0, longestReason)}`}]`,
    })
    if (received.ok) options.invited(room)
  }

  return {
    async hear(said) {
      const content = contentOf(said.message)
      if (!content) return
      const { chat, room, sender, senderName } = said
      const by = { jid: jidOf(chat), sender, senderName }
      host.knows({ jid: by.jid, name: room?.name ?? senderName, isGroup: room !== undefined })
      switch (content.kind) {
        case 'words':
          return words(said, content)
        case 'invitation':
          return invitation(said, content)
        case 'correction': {
          const known = await ids.external(source, chat, sender, content.of)
          const externalId = known ?? (room ? undefined : content.of)
          const text = room ? callIn(content.text, room.nickname).text : content.text
          if (externalId !== undefined) await host.changed({ ...by, externalId, text })
          return
        }
        case 'retraction':
          return host.changed({ ...by, externalId: content.of, text: null })
        case 'reactions':
          for (const emoji of content.emojis) await host.reacted({ ...by, to: content.to, emoji })
      }
    },
  }
}

/** The last part of the address, as people see it. */
function nameIn(url: string): string {
  const last = URL.canParse(url) ? (new URL(url).pathname.split('/').at(-1) ?? '') : ''
  try {
    return decodeURIComponent(last) || 'file'
  } catch (error) {
    if (error instanceof URIError) return last
    throw error
  }
}
