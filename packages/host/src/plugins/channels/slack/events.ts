import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChannelHost, Incoming, Quoted } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { type SlackApi, SlackRefusal } from './api.ts'
import { pressIn } from './blocks.ts'
import { createMemory, type Directory } from './directory.ts'
import { emojiNamed } from './emoji.ts'
import type { History } from './history.ts'
import { escaped } from './markup.ts'
import {
  isSpoken,
  jidOf,
  joinSchema,
  mentions,
  messageSchema,
  type Ourselves,
  peopleIn,
  plainWords,
  pressSchema,
  reactionSchema,
  renameSchema,
  type SlackFile,
  type SlackMessage,
  sharedIn,
  speakerOf,
  threadOf,
  timeOf,
} from './said.ts'

/** Hands what Slack tells to the host. Each promise is fulfilled once it is stored or refused: then Slack may forget it. */
export interface Events {
  /** an event of a chat, which keeps its place among the others of the chat */
  take(event: unknown): Promise<void>
  /** a message that was fetched */
  hear(message: SlackMessage): Promise<void>
  press(body: unknown): Promise<void>
}

export interface EventOptions {
  host: ChannelHost
  api: SlackApi
  directory: Directory
  history: History
  ourselves: Ourselves
  /** taken in this process; Slack tells of a mention twice, and of whatever it is not sure about */
  taken: Set<string>
  /** how often a file could not be fetched, by its id */
  failures: Map<string, number>
  log: Logger
  now(): number
}

const mostTaken = 5000
const mostAttempts = 3
const settled = 'This is settled already.'
const typed = z.object({ type: z.string() })
const placed = z.object({ channel: z.string() })
const inItem = z.object({ item: placed })

/** Which chat an event belongs to; events of no chat share a place. */
export const placeOf = (event: unknown): string =>
  placed.safeParse(event).data?.channel ?? inItem.safeParse(event).data?.item.channel ?? ''

export function createEvents(options: EventOptions): Events {
  const { host, api, directory, history, ourselves, taken, log } = options

  const wordsOf = async (text: string) => {
    const people = await Promise.all(
      peopleIn(text).map(async id => [id, await directory.nameOf(id)] as const),
    )
    return plainWords(text, ourselves, new Map(people))
  }
  const personOf = async (sender: string) => ({ sender, senderName: await directory.nameOf(sender) })
  const files = createFiles(options)

  const beginnings = createMemory<{ quote: Quoted; isOurs: boolean }>(options.now)

  /** The message that began the thread: an answer in a thread answers it. */
  const beginningOf = (channel: string, thread: string) =>
    beginnings.get(`${channel}:${thread}`, async () => {
      try {
        const found = await api.ask(web =>
          web.conversations.history({ channel, latest: thread, oldest: thread, inclusive: true, limit: 1 }),
        )
        const first = messageSchema.safeParse({ ...found.messages?.[0], channel }).data
        if (first?.ts !== thread) return undefined
        const isPerson = first.user !== undefined && first.bot_id === undefined
        const by = isPerson ? await personOf(first.user ?? '') : undefined
        return {
          quote: { id: thread, ...by, text: await wordsOf(first.text ?? '') },
          // Under another name, we have no user's id.
          isOurs:
            first.user === ourselves.user || (first.bot_id !== undefined && first.bot_id === ourselves.bot),
        }
      } catch (error) {
        log.debug({ channel, reason: String(error) }, 'the beginning of a thread could not be read')
        return undefined
      }
    })

  const hear = async (message: SlackMessage) => {
    const { channel, ts } = message
    const sender = speakerOf(message, ourselves)
    if (sender === undefined || !isSpoken(message)) return
    const known = `${channel}:${ts}`
    if (taken.has(known)) return
    const jid = jidOf(channel)
    host.knows(await directory.chatOf(channel))
    const text = message.text ?? ''
    const thread = threadOf(message)
    const { attachments, missing } = await files.take({ jid, sender }, message.files ?? [])
    const words = [await wordsOf(text), ...sharedIn(message), ...missing].filter(Boolean).join('\n')
    if (words === '' && attachments.length === 0 && !mentions(text, ourselves)) return
    const beginning = thread === undefined ? undefined : await beginningOf(channel, thread)
    const isAnswer = beginning?.isOurs === true || message.parent_user_id === ourselves.user
    const received = await host.receive({
      jid,
      ...(await personOf(sender)),
      externalId: ts,
      text: words,
      ...(attachments.length > 0 && { attachments }),
      at: timeOf(ts),
      mentioned: mentions(text, ourselves) || isAnswer,
      thread,
      quote: beginning?.quote ?? (thread === undefined ? undefined : { id: thread }),
    })
    history.noted(channel, message, received.ok)
    if (taken.size >= mostTaken) taken.clear()
    taken.add(known)
  }

  const change = async ({ channel, message, previous_message: before }: SlackMessage) => {
    const sender = message && speakerOf(message, ourselves)
    // Slack also tells when it has added a preview, or an answer to a thread.
    if (!message || sender === undefined || message.text === before?.text) return
    const isGone = message.subtype === 'tombstone'
    const text = isGone ? null : await wordsOf(message.text ?? '')
    await host.changed({ jid: jidOf(channel), ...(await personOf(sender)), externalId: message.ts, text })
  }

  const remove = async ({ channel, previous_message: before }: SlackMessage) => {
    const sender = before && speakerOf(before, ourselves)
    if (!before || sender === undefined) return
    await host.changed({
      jid: jidOf(channel),
      ...(await personOf(sender)),
      externalId: before.ts,
      text: null,
    })
  }

  const takeMessage = (message: SlackMessage): Promise<void> => {
    if (message.subtype === 'message_changed') return change(message)
    if (message.subtype === 'message_deleted') return remove(message)
    return hear(message)
  }

  const react = async ({ user, reaction, item }: z.output<typeof reactionSchema>) => {
    if (user === ourselves.user) return
    await host.reacted({
      jid: jidOf(item.channel),
      ...(await personOf(user)),
      to: item.ts,
      emoji: emojiNamed(reaction),
    })
  }

  /** Seen by whoever pressed it, and by nobody else. */
  const answer = async ({ user, container }: z.output<typeof pressSchema>, message: string) => {
    const { channel_id: channel, thread_ts } = container
    const text = escaped(message)
    try {
      await api.ask(web =>
        web.chat.postEphemeral({ channel, user: user.id, text, ...(thread_ts && { thread_ts }) }),
      )
    } catch (error) {
      log.debug({ reason: String(error) }, 'a press of a button was not answered')
    }
  }

  const learn = async (channel: string) => {
    directory.forget(channel)
    host.knows(await directory.chatOf(channel))
  }

  const takers: Readonly<Record<string, (event: unknown) => Promise<unknown> | undefined>> = {
    message: taker(messageSchema, takeMessage),
    app_mention: taker(messageSchema, takeMessage),
    reaction_added: taker(reactionSchema, react),
    channel_rename: taker(renameSchema, ({ channel }) => learn(channel.id)),
    group_rename: taker(renameSchema, ({ channel }) => learn(channel.id)),
    member_joined_channel: taker(joinSchema, async ({ user, channel }) => {
      if (user === ourselves.user) await learn(channel)
    }),
  }

  return {
    hear,
    async take(event) {
      const type = typed.safeParse(event).data?.type ?? ''
      if (Object.hasOwn(takers, type)) await takers[type]?.(event)
    },
    async press(body) {
      const { data } = pressSchema.safeParse(body)
      if (!data) return
      const { user, container, actions } = data
      const pressed = pressIn(actions[0]?.action_id ?? '')
      const by = { jid: jidOf(container.channel_id), ...(await personOf(user.id)) }
      const outcome =
        pressed?.kind === 'choice'
          ? await host.choose({ ...by, id: pressed.id, question: 1, answer: { option: pressed.option } })
          : pressed && (await host.decide({ ...by, id: pressed.id, decision: pressed.decision }))
      // Not waited for: Slack shows a failure unless it is told within three seconds that the press has arrived.
      if (!outcome?.ok) void answer(data, outcome?.error.message ?? settled)
    },
  }
}

/** What does not have the form that Slack has documented is left alone. */
const taker =
  <S extends z.ZodType>(schema: S, work: (event: z.output<S>) => Promise<unknown>) =>
  (event: unknown) => {
    const parsed = schema.safeParse(event)
    return parsed.success ? work(parsed.data) : undefined
  }

/** Fetched only where the host wants them: strangers cause no traffic. */
function createFiles({ host, api, failures }: EventOptions) {
  const contentOf = async function* (file: SlackFile) {
    const whole =
      file.file_access === 'check_file_info'
        ? (await api.ask(web => web.files.info({ file: file.id }))).file
        : file
    const url = whole?.url_private_download ?? whole?.url_private
    if (url === undefined) throw new SlackRefusal('file_not_found')
    yield* api.download(url)
  }

  /** The file, or a line that says why it is missing. */
  const takeOne = async (
    by: Pick<Incoming, 'jid' | 'sender'>,
    file: SlackFile,
  ): Promise<Attachment | string> => {
    const name = file.name || file.id
    if (file.mode === 'tombstone') return `[${name} was deleted]`
    if (file.is_external) return `[${name}: ${file.url_private ?? 'a file outside of Slack'}]`
    try {
      const taken = await host.takeFile(by, { name, content: contentOf(file) })
      return taken.ok ? taken.attachment : `[${name} was not taken: ${taken.error.message}]`
    } catch (error) {
      const isRefused = error instanceof SlackRefusal && error.retryAfterMs === undefined
      const attempts = (failures.get(file.id) ?? 0) + 1
      failures.set(file.id, attempts)
      // Anything else may be over soon: the message is fetched once more. A file that is never given must not hold up its chat.
      if (!isRefused && attempts < mostAttempts) throw error
      failures.delete(file.id)
      return `[${name} was not taken: ${error instanceof Error ? error.message : String(error)}]`
    }
  }

  return {
    async take(by: Pick<Incoming, 'jid' | 'sender'>, all: readonly SlackFile[]) {
      const attachments: Attachment[] = []
      const missing: string[] = []
      for (const file of all) {
        const taken = await takeOne(by, file)
        if (typeof taken === 'string') missing.push(taken)
        else attachments.push(taken)
      }
      return { attachments, missing }
    },
  }
}
