import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { layoutOf } from '../../../../host/src/base/layout.ts'
import { hostWith } from '../../../../host/src/chat/channels/testing.ts'
import type { Channel, ChannelHost, Outgoing } from '../../../../host/src/chat/channels/types.ts'
import type { ConfigInput } from '../../../../host/src/config.ts'
import { createLibrary } from '../../../../host/src/plugins/channels/library.ts'
import { open } from '../../../../host/src/plugins/channels/whatsapp/channel.ts'
import { whatsapp } from '../../../../host/src/plugins/channels/whatsapp/kind.ts'
import { whatsappSettings } from '../../../../host/src/plugins/channels/whatsapp/settings.ts'
import { until } from '../../until.ts'
import { type GroupInChat, openHost } from '../host.ts'
import { openWhatsApp, type WhatsAppOptions } from './platform.ts'

export type Platform = Awaited<ReturnType<typeof openWhatsApp>>

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-whatsapp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export const optionsFor = (
  settings: Record<string, unknown>,
  more: { folder?: string; log?: (line: string) => void; now?: () => number } = {},
) => ({
  settings: whatsappSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), whatsapp),
  readFile: async () => undefined,
  folder: () => more.folder ?? '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: more.log ? 'trace' : 'silent' }, { write: more.log ?? (() => {}) }),
  now: more.now ?? Date.now,
})

export const connected = (platform: Platform, channel: Channel) =>
  until(async () => {
    const { isConnected, confirm } = channel.status?.() ?? {}
    if (confirm) await platform.confirm(confirm)
    return isConnected === true
  })

/** The stand-in, and a host with the channel whose chats have groups. */
export async function begin(
  more: WhatsAppOptions & {
    config?: ConfigInput
    groups?: readonly GroupInChat[]
    settings?: Record<string, unknown>
  } = {},
) {
  const platform = await openWhatsApp(more)
  onTestFinished(platform.close)
  const { direct, room } = platform
  const host = await openHost({
    kind: whatsapp,
    settings: { ...platform.settings, ...more.settings },
    groups: more.groups ?? [
      { folder: 'main', jid: direct, main: true },
      { folder: 'room', jid: room, requires_trigger: true },
    ],
    ...(more.config && { config: more.config }),
  })
  onTestFinished(host.stop)
  await connected(platform, host.channel)
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
  return { platform, host, sent, ours, direct, room, ann: platform.ann }
}

const playedBy = (given: Partial<ChannelHost>) => hostWith({ moved: async () => {}, ...given })

/** The channel alone, with a host that the test plays. */
export async function alone(
  given: Partial<ChannelHost> = {},
  more: WhatsAppOptions & Parameters<typeof optionsFor>[1] & { settings?: Record<string, unknown> } = {},
) {
  const platform = await openWhatsApp(more)
  onTestFinished(platform.close)
  const folder = more.folder ?? temporary()
  const another = async (next: Partial<ChannelHost> = given, settings = more.settings) => {
    const channel = open(optionsFor({ ...platform.settings, ...settings }, { ...more, folder }))
    onTestFinished(async () => channel.disconnect?.())
    await channel.connect?.(playedBy(next))
    return channel
  }
  return { platform, folder, another, channel: await another() }
}

export const outgoing = (jid: string, text: string, more: Partial<Outgoing> = {}): Outgoing => ({
  ...{
    id: 1,
    group: 'main',
    jid,
    author: 'agent',
    kind: 'text',
    text,
    sender: null,
    speech: null,
    messageId: null,
  },
  ...{ createdAt: 0, status: 'pending', attempts: 1, nextAttemptAt: 0, error: null, sentAt: null },
  ...{ partsSent: 0, partsTotal: 0 },
  ...more,
})
export const part = { number: 1, of: 1, key: 'hw1-1' }
