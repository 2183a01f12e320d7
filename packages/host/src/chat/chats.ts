import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { refused } from '../base/outcome.ts'
import type { Retries } from '../base/retry.ts'
import type { Config } from '../config.ts'
import { isNeverHeld } from '../guard/gates.ts'
import type { RequestQueue } from '../services/request-queue.ts'
import { folderContext, wipedAt } from '../store/contexts.ts'
import type { Positions } from '../store/positions.ts'
import { hostMessage } from '../store/text-message.ts'
import type { MessageRow, Settled, Store } from '../store/types.ts'
import { createApprovals } from './approvals/approvals.ts'
import { cardOnPlatform } from './approvals/card.ts'
import type { Approvals, ApprovalsOptions } from './approvals/types.ts'
import type { Attachments } from './attachments/attachments.ts'
import { changedApproval, changedQuestion } from './card-text.ts'
import { hostFor } from './channels/host.ts'
import { type Liveness, livenessOf } from './channels/liveness.ts'
import { createLogChannel } from './channels/log.ts'
import { type Channels, createChannels } from './channels/registry.ts'
import type { Channel } from './channels/types.ts'
import { createWebChannel, type WebChannel } from './channels/web.ts'
import { createFeed, type Feed } from './feed.ts'
import { type Cards, cardOf, cardsIn, entryOfIncoming, entryOfMessage, isShown } from './history.ts'
import { createInbound, type Inbound } from './inbound.ts'
import { createLiveTexts, type LiveTexts } from './live-text.ts'
import type { Lookup } from './outbox/delivery.ts'
import { createPairing, type Pairing, type PairingOptions } from './pairing.ts'
import { containsSecrets, listFor, showsLiveText } from './people.ts'
import { createProgress, type Progress } from './progress.ts'
import { createQuestions, type Questions } from './questions/questions.ts'

/** All channels, put together: what the host connects to its outbox and its agents, and the API shows to people. */
export interface Chats {
  channels: Channels
  web: WebChannel
  feed: Feed
  inbound: Inbound
  /** what agents ask people */
  questions: Questions
  /** what agents are not to do without a person; undefined: nobody is asked */
  approvals: Approvals | undefined
  /** who asks to be let in */
  pairing: Pairing
  /** for the outbox: buttons, and what edits and reactions are for */
  lookup: Omit<Lookup, 'now'>
  /** what goes along with messages; undefined: nothing does */
  files: Attachments | undefined
  channelOf(jid: string): Channel | undefined
  /** how the channels are that can lose their platform */
  liveness(): readonly Liveness[]
  /** for the outbox: what has become of messages */
  settled(messages: readonly Settled[]): void
  typing(jid: string, on: boolean): void
  /** what platforms show of agents at work */
  progress: Progress
  /** what agents are writing */
  liveTexts: LiveTexts
  /** there are others than before */
  groupsChanged(): void
  connect(): Promise<void>
  disconnect(): Promise<void>
}

/** of a chat's latest messages, to find the one that somebody answers or reacts to */
const searchedBack = 1000
const mostCharacters = 1_000_000
/** a platform is not asked for its chats more often than this */
const listChatsMs = 60_000

export interface ChatsOptions {
  store: Store
  config: Config
  retries: Pick<Retries, 'inBackground'>
  log: Logger
  now(): number
  /** something waits for an agent */
  kick(): void
  /** somebody wants a group's agent to stop what it is doing */
  stop?: Parameters<typeof createInbound>[0]['stop']
  /** where requests wait; left out: agents cannot ask people */
  requestQueue?: RequestQueue
  /** what lets held commands happen; left out: nothing is held */
  guard?: Pick<ApprovalsOptions, 'heldCommands'>
  positions: Positions
  /** there is something to deliver */
  said(): void
  /** what an operator does; left out: nobody can be let in */
  perform?: PairingOptions['perform']
  /** a group has another name or another chat */
  renamed?(): void
  /** what somebody puts on a group's list by saying so */
  todo?: Parameters<typeof createInbound>[0]['todo']
  files?: Attachments | undefined
  /** further channels, which come first */
  channels?: readonly Channel[]
  /** left out: one of its own */
  registry?: Channels
}

export function createChats(options: ChatsOptions): Chats {
  const { store, config, log, now, kick, positions, registry = createChannels({ log }) } = options
  const feed = createFeed(now)
  const channelOf = registry.of
  /** Whoever looks sees the card change; on a platform, its message does. */
  const showCard = (messageId: number, cards: Cards, text: string) => {
    const row = messageIn(store, messageId)
    if (!row) return
    feed.publish(() => ({ kind: 'entry', entry: entryOfMessage(row, cards) }))
    if (!channelOf(row.jid)?.edit) return
    store.transaction(transaction =>
      transaction.insertMessage({
        ...hostMessage(positions.next(), { folder: row.group, jid: row.jid }, text, now()),
        kind: 'edit',
        messageId: String(messageId),
      }),
    )
    options.said()
  }
  const questions = createQuestions({
    store: store.questions,
    requestQueue: options.requestQueue,
    isRegistered: folder => store.group(folder) !== undefined,
    changed: question => showCard(question.messageId, { question }, changedQuestion(question)),
    now,
  })
  const approvals =
    options.guard &&
    createApprovals({
      heldCommands: options.guard.heldCommands,
      positions,
      said: options.said,
      store,
      config,
      requestQueue: options.requestQueue,
      changed: row => showCard(row.messageId, { approval: approvals?.cardOf(row) }, changedApproval(row)),
      showsCards: jid => channelOf(jid)?.showsCards === true,
      homeOf(folder, jid) {
        const own = store.group(folder)?.jid
        if (own === jid) return undefined
        const home = own === undefined ? '' : (channelOf(own)?.name ?? '')
        return home === channelOf(jid)?.name ? undefined : home
      },
      log,
      now,
    })
  const pairing = createPairing({
    store,
    positions,
    said: options.said,
    perform: options.perform ?? (async () => refused('unavailable', 'Nobody can be let in here.')),
    now,
  })
  const inbound = createInbound({
    store,
    config,
    now,
    kick,
    log,
    questions,
    approvals,
    todo: options.todo ?? (() => undefined),
    ...(options.stop ? { stop: options.stop } : {}),
    unknown: (name, said) => {
      if (channelOf(said.jid)?.pairs) pairing.asked(name, said)
    },
    pair: pairing.meantBy,
    sentAs: (group, id) => sentAs(store, group, id),
    received: row => feed.publish(() => ({ kind: 'entry', entry: entryOfIncoming(row) })),
  })
  const web = createWebChannel({ feed, now })
  const hostOf = (channel: Channel) =>
    hostFor(channel, {
      store,
      inbound,
      files: options.files,
      groupsChanged: () => options.renamed?.(),
      isOpenToAll: group => listFor(config, group.folder, 'senders') === undefined,
      mayShowElsewhere: ({ folder }) =>
        !store.taints.of(folder, folderContext).secret && !containsSecrets(config, folder),
      now,
    })
  const liveTexts = createLiveTexts({
    mayShow: ({ folder, jid }) =>
      store.group(folder)?.jid === jid &&
      showsLiveText(config, folder) &&
      // What an agent says in its own chat stays local, so its answer would be shown as well.
      isNeverHeld('local'),
    show: change => feed.broadcast({ kind: 'live_text', ...change }),
  })
  const liveText: Chats['lookup']['liveText'] = (folder, { jid, thread }) =>
    store.answerThread(folder, jid) === thread ? liveTexts.of(folder, jid) : undefined
  const listChats = createLister({ registry, hostOf, log, now })
  const progress = createProgress({
    store,
    positions,
    channelOf,
    liveText,
    afterMs: config.agents.progressMs,
    said: options.said,
    log,
    now,
  })
  for (const channel of [createLogChannel(log), web, ...(options.channels ?? []).toReversed()])
    void registry.attach(channel)

  return {
    channels: registry,
    pairing,
    lookup: { ...lookupIn(store, approvals), liveText },
    web,
    feed,
    inbound,
    questions,
    approvals,
    files: options.files,
    channelOf,
    liveness: () => livenessOf(registry.all(), now()),
    settled(messages) {
      for (const { message, change } of messages) {
        const row: MessageRow = { ...message, ...change }
        if (row.kind === 'edit' || row.kind === 'progress') continue
        liveTexts.said(row.jid)
        if (!row.text.includes('<') || isShown(entryOfMessage(row))) {
          feed.publish(() => ({ kind: 'entry', entry: entryOfMessage(row, cardsIn(store, approvals, row)) }))
        }
        const group = row.status === 'failed' ? store.group(row.group) : undefined
        // What the host says by itself is no agent's business, and a stranger's address or mail server has its words in it.
        if (!group || (row.author === 'host' && row.kind !== 'approval')) continue
        // Promise 4: a final failure reaches the agent, and with it everybody who reads the chat.
        options.retries.inBackground('telling an agent that a message failed', () =>
          inbound.note(
            group,
            `failed:${row.id}`,
            `Message ${row.id} to ${row.jid} could not be delivered: ${row.error ?? 'no reason is known'}.`,
          ),
        )
      }
    },
    typing: (jid, on) => {
      const channel = channelOf(jid)
      channel?.typing?.(jid, on)
      // Whoever looks at the chat from here sees it too, whichever channel's it is.
      if (channel !== web) web.typing?.(jid, on)
    },
    progress,
    liveTexts,
    groupsChanged() {
      feed.publish(() => ({ kind: 'chats' }))
      void listChats()
    },
    connect: () => registry.connect(hostOf),
    disconnect() {
      progress.stop()
      liveTexts.stop()
      return registry.disconnect()
    },
  }
}

const messageIn = (store: Store, id: number): MessageRow | undefined => {
  const [row] = store.messages({ after: id - 1, limit: 1 })
  return row?.id === id ? row : undefined
}

const lookupIn = (store: Store, approvals: Approvals | undefined): Chats['lookup'] => ({
  message: id => messageIn(store, id),
  card(message) {
    const { question, approval } = cardsIn(store, approvals, message)
    if (question) return { kind: 'question', card: cardOf(question) }
    return approval && { kind: 'approval', card: cardOnPlatform(approval) }
  },
  reactedTo({ jid, group, messageId }) {
    if (messageId !== null && !/^\d{12}$/.test(messageId)) return messageId
    const { rows } = store.agents.latestIncoming({ group, jid, limit: 200, characters: mostCharacters })
    const row =
      messageId === null
        ? // What the host itself told the agent is on no platform.
          rows.findLast(({ channel }) => channel !== 'host')
        : rows.find(({ id }) => id === Number(messageId))
    return row?.externalId ?? messageId
  },
})

/**
 * Its words only where the group itself said them, since it was last wiped. What the host says is for people: it may hold
 * the code of a card, or a stranger's name.
 */
function sentAs(store: Store, { folder, jid }: Group, id: string) {
  const row = store
    .latestMessages({ jid, within: searchedBack, limit: searchedBack, characters: mostCharacters })
    // An answer has the platform's id of the message that showed its agent at work.
    .rows.findLast(({ externalIds }) => externalIds?.includes(id))
  if (!row) return undefined
  const isOwn =
    row.group === folder && row.author !== 'host' && row.createdAt >= Number(store.meta(wipedAt(folder)) ?? 0)
  return { by: namesOf[row.author], text: isOwn ? row.text : undefined }
}
const namesOf = { agent: 'you', operator: 'the operator', host: 'Hatchway' } as const

/** Asks the channels that can list their chats, now and then, when somebody wants to know. */
function createLister(options: {
  registry: Channels
  hostOf(channel: Channel): ReturnType<typeof hostFor>
  log: Logger
  now(): number
}): () => Promise<void> {
  const { registry, hostOf, log, now } = options
  const listedAt = new WeakMap<Channel, number>()
  return async () => {
    for (const channel of [...registry.all()]) {
      if (now() - (listedAt.get(channel) ?? 0) < listChatsMs) continue
      listedAt.set(channel, now())
      try {
        for (const chat of (await channel.chats?.()) ?? []) hostOf(channel).knows(chat)
      } catch (error) {
        log.warn({ err: error, channel: channel.name }, 'the chats of a channel could not be listed')
      }
    }
  }
}
