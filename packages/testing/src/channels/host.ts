import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createGroupDirectories, createLayout, layoutOf } from '../../../host/src/base/layout.ts'
import { type Attachments, createAttachments } from '../../../host/src/chat/attachments/attachments.ts'
import { groupOf, openChats } from '../../../host/src/chat/channels/testing.ts'
import { createOutbox } from '../../../host/src/chat/outbox/outbox.ts'
import { type ConfigInput, configSchema } from '../../../host/src/config.ts'
import type { ChannelKind } from '../../../host/src/plugins/channels/kind.ts'
import { createLibrary } from '../../../host/src/plugins/channels/library.ts'
import type { NewMessage } from '../../../host/src/store/types.ts'

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
  const log = pino({ level: process.env.HATCHWAY_TEST_LOG ?? 'silent' })
  const module = await kind.load?.()
  let files: Attachments | undefined
  const channelOptions = {
    settings: kind.settings.parse(options.settings),
    library: createLibrary(layout, kind),
    readFile: async (id: string) => files?.read(id),
    folder: () => layout.state,
    assistant: config.agents.assistant,
    log,
    now: Date.now,
  }
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
    notes: () => store.agents.incoming({}).filter(row => row.channel === 'host'),
  }
}
