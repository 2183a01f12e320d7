import type { Logger } from 'pino'
import type { Retries } from '../base/retry.ts'
import type { Config } from '../config.ts'
import type { RequestQueue } from '../services/request-queue.ts'
import type { Settled } from '../store/settled.ts'
import type { Store } from '../store/types.ts'
import { type Approvals, type ApprovalsOptions, createApprovals } from './approvals/approvals.ts'
import type { Attachments } from './attachments/attachments.ts'
import { createLogChannel } from './channels/log.ts'
import type { Channel } from './channels/types.ts'
import { createWebChannel, type WebChannel } from './channels/web.ts'
import { createWebhookChannel, type WebhookChannel } from './channels/webhook.ts'
import { createFeed, type Feed } from './feed.ts'
import { type Cards, cardsIn, entryOfIncoming, entryOfMessage, isShown } from './history.ts'
import { createInbound, type Inbound } from './inbound.ts'
import { createQuestions, type Questions } from './questions/questions.ts'

/** All channels, put together: what the host connects to its outbox and its agents, and the API shows to people. */
export interface Chats {
  /** the first that reaches a chat has it */
  channels: readonly Channel[]
  web: WebChannel
  webhook: WebhookChannel
  feed: Feed
  inbound: Inbound
  /** what agents ask people */
  questions: Questions
  /** what agents are not to do without a person; undefined: nobody is asked */
  approvals: Approvals | undefined
  /** what goes along with messages; undefined: nothing does */
  files: Attachments | undefined
  channelOf(jid: string): Channel | undefined
  /** for the outbox: what has become of messages */
  settled(messages: readonly Settled[]): void
  typing(jid: string, on: boolean): void
  /** there are others than before */
  groupsChanged(): void
  connect(): Promise<void>
  disconnect(): Promise<void>
}

export function createChats(options: {
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
  requestQueue?(): RequestQueue | undefined
  /** what lets held commands happen; left out: nothing is held */
  guard?: Pick<ApprovalsOptions, 'heldCommands' | 'positions' | 'said'>
  /** what somebody puts on a group's list by saying so */
  todo?: Parameters<typeof createInbound>[0]['todo']
  files?: Attachments | undefined
  /** further channels, which come first */
  channels?: readonly Channel[]
  environment?: NodeJS.ProcessEnv
}): Chats {
  const { store, config, log, now, kick, environment = process.env } = options
  const feed = createFeed(now)
  const showCard = (messageId: number, cards: Cards) => {
    const [row] = store.messages({ after: messageId - 1, limit: 1 })
    if (row?.id !== messageId) return
    feed.publish(() => ({ kind: 'entry', entry: entryOfMessage(row, cards) }))
  }
  const questions = createQuestions({
    store: store.questions,
    requestQueue: () => options.requestQueue?.(),
    isRegistered: folder => store.group(folder) !== undefined,
    changed: question => showCard(question.messageId, { question }),
    now,
  })
  const approvals =
    options.guard &&
    createApprovals({
      ...options.guard,
      store,
      config,
      requestQueue: () => options.requestQueue?.(),
      changed: row => showCard(row.messageId, { approval: approvals?.cardOf(row) }),
      showsCards: jid => channelOf(jid)?.showsCards === true,
      log,
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
    received: row => feed.publish(() => ({ kind: 'entry', entry: entryOfIncoming(row) })),
  })
  const web = createWebChannel({ feed, now })
  const webhook = createWebhookChannel({
    config,
    environment,
    readFile: async id => options.files?.read(id),
    now,
  })
  const channels = [...(options.channels ?? []), web, webhook, createLogChannel(log)]
  const channelOf = (jid: string) => channels.find(channel => channel.reaches(jid))

  return {
    channels,
    web,
    webhook,
    feed,
    inbound: inbound,
    questions,
    approvals,
    files: options.files,
    channelOf,
    settled(messages) {
      for (const { message, change } of messages) {
        const row = { ...message, ...change }
        if (!row.text.includes('<') || isShown(entryOfMessage(row))) {
          feed.publish(() => ({ kind: 'entry', entry: entryOfMessage(row, cardsIn(store, approvals, row)) }))
        }
        const group = row.status === 'failed' ? store.group(row.group) : undefined
        if (!group) continue
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
    groupsChanged: () => feed.publish(() => ({ kind: 'chats' })),
    async connect() {
      for (const channel of channels) {
        await channel.connect?.({
          receive: async message => inbound.receive(channel.name, message),
          choose: async choice => inbound.choose(channel.name, choice),
          decide: async ruling => inbound.decide(channel.name, ruling),
        })
      }
    },
    async disconnect() {
      for (const channel of channels) await channel.disconnect?.()
    },
  }
}
