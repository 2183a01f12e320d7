import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { createGroupDirectories, createLayout, type Layout, layoutOf } from '../../../host/src/base/layout.ts'
import { type Attachments, createAttachments } from '../../../host/src/chat/attachments/attachments.ts'
import { groupOf, openChats } from '../../../host/src/chat/channels/testing.ts'
import { createOutbox } from '../../../host/src/chat/outbox/outbox.ts'
import { type ConfigInput, configSchema } from '../../../host/src/config.ts'
import type { ChannelKind } from '../../../host/src/plugins/channels/kind.ts'
import { createLibrary } from '../../../host/src/plugins/channels/library.ts'
import type { NewMessage } from '../../../host/src/store/types.ts'
import { openLive } from '../daemon/in-process.ts'

export interface GroupInChat {
  folder: string
  jid: string
  main?: boolean
  requires_trigger?: boolean
}

/** A platform that people add, or a channel that they need not add; one that is not loaded is the web chat of every host. */
export type TestedKind = Pick<ChannelKind, 'name' | 'title' | 'settings' | 'library'> &
  Partial<Pick<ChannelKind, 'load'>>

export type HostWithChannel = Awaited<ReturnType<typeof openHost>>

/** What a channel is given, in a host with this layout. */
const optionsOf = (
  kind: TestedKind,
  settings: Record<string, unknown>,
  layout: Layout,
  assistant: string,
  readFile: (id: string) => Promise<Buffer | undefined> = async () => undefined,
) => ({
  settings: kind.settings.parse(settings),
  library: createLibrary(layout, kind),
  readFile,
  folder: () => layout.state,
  assistant,
  log: pino({ level: process.env.HATCHWAY_TEST_LOG ?? 'silent' }),
  now: Date.now,
})

/** A whole host, with this channel. `refused`: how often it was told that somebody may not do something. */
export async function openLiveWith(
  kind: TestedKind,
  settings: Record<string, unknown>,
  options: { config: ConfigInput; groups: readonly GroupInChat[] },
) {
  const live = await openLive({ agents: { enabled: 'no' }, ...options.config })
  onTestFinished(() => live.close())
  for (const { folder, jid, main = false } of options.groups)
    await live.host.addGroup({ folder, jid, name: folder, main, dialect: 'hatchway' })
  await live.start()
  await live.host.startAgents()
  let refused = 0
  const noted = async <T extends { ok: boolean }>(answering: Promise<T>): Promise<T> => {
    const answer = await answering
    if (!answer.ok) refused++
    return answer
  }
  const module = await kind.load?.()
  const { assistant } = live.config.agents
  const channel = module?.open(optionsOf(kind, settings, live.layout, assistant))
  const detach =
    channel &&
    (await live.host.chats?.channels.attach({
      ...channel,
      connect: async host =>
        channel.connect?.({
          ...host,
          receive: said => noted(host.receive(said)),
          decide: ruling => noted(host.decide(ruling)),
        }),
    }))
  onTestFinished(async () => detach?.())
  const { store, chats } = live.host
  if (!chats) throw new Error('the host has no chats')
  return { live, store, chats, channel: channel ?? chats.web, refused: () => refused }
}

/** Chats, outbox and store as in a daemon, on a directory that may be opened again, with one channel. */
export async function openHost(options: {
  kind: TestedKind
  settings: Record<string, unknown>
  groups: readonly GroupInChat[]
  directory?: string
  config?: ConfigInput
}) {
  const { kind } = options
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'hatchway-channel-'))
  const layout = layoutOf(directory)
  createLayout(layout)
  // Where people's files are put; without it every file would be refused.
  for (const { folder } of options.groups) mkdirSync(join(layout.groups, folder), { recursive: true })
  const config = { ...configSchema.parse({ timezone: 'UTC', ...options.config }), data: directory }
  const module = await kind.load?.()
  let files: Attachments | undefined
  const channelOptions = optionsOf(kind, options.settings, layout, config.agents.assistant, async id =>
    files?.read(id),
  )
  const { log } = channelOptions
  const opened = module?.open(channelOptions)
  const rig = await openChats({
    groups: options.groups.map(({ folder, ...group }) => groupOf(folder, group)),
    directory,
    config: options.config,
    channels: opened ? [opened] : [],
    said: () => outbox.kick(),
    files: (store, positions) => {
      files = createAttachments({
        config,
        layout,
        store,
        positions,
        owners: () => undefined,
        placeOf: folder => join(layout.groups, folder),
        apply: () => {},
        fault: () => {},
        log,
        now: Date.now,
      })
      return files
    },
  })
  const { store, chats, positions } = rig
  const channel = opened ?? chats.web
  for (const group of store.groups()) createGroupDirectories(layout, group, undefined)
  const outbox = createOutbox({
    store,
    channelOf: chats.channels.of,
    lookup: chats.lookup,
    log,
    intakeIsBusy: () => false,
    now: Date.now,
    settled: chats.settled,
  })
  await chats.connect()
  outbox.kick()
  let isOpen = true
  const end = async (before: () => void) => {
    if (!isOpen) return
    isOpen = false
    before()
    await chats.disconnect()
    await outbox.stop()
    rig.kill()
  }
  return {
    directory,
    store,
    chats,
    channel,
    /** what an agent asks for, as it would come through the hatch */
    command: rig.command,
    /** what its requests have come to */
    sent: rig.sent,
    check: async () => module?.check(channelOptions) ?? '',
    /** as a killed process leaves it: nothing more is stored */
    kill: () => end(rig.kill),
    stop: () => end(() => {}),
    /** what an agent says; the message's number */
    tell(jid: string, text: string, more: Partial<NewMessage> = {}) {
      const group = store.groups().find(one => one.jid === jid)?.folder ?? 'main'
      const id = positions.next()
      store.transaction(transaction =>
        transaction.insertMessage({
          ...{
            id,
            group,
            jid,
            author: 'agent',
            kind: 'text',
            text,
            sender: null,
            speech: null,
            messageId: null,
          },
          createdAt: Date.now(),
          ...more,
        }),
      )
      outbox.kick()
      return id
    },
    kick: outbox.kick,
    message: (id: number) => store.messages({ after: id - 1, limit: 1 })[0],
    heard: (jid: string) =>
      store.agents.incoming({}).filter(row => row.jid === jid && row.channel === channel.name),
    /** what people said or pressed in vain */
    refused: () => chats.inbound.counts().refused,
    notes: () => store.agents.incoming({}).filter(row => row.channel === 'host'),
  }
}
