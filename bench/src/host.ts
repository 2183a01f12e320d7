import { fileURLToPath } from 'node:url'
import * as host from '@hatchway/host'
import type { ChatEventAnswer } from '@hatchway/host/api'
import { z } from 'zod'
import type { HatchwayOptions } from './hatchway.ts'
import { chatJidOf, folderOf, jidOf, telegramJidOf } from './messages.ts'

/** With sandbox.ts, the only file of the benchmark that knows Hatchway's own API. */
export interface Daemon {
  ready: Promise<void>
  /** why agents cannot be started, if so */
  agentsReady(): Promise<string | undefined>
  sessions(): Promise<number>
  /** whatever people say from now on, once it is stored, by its text */
  onSaid(stored: (text: string) => void): Promise<void>
  stop(): Promise<void>
}

const echoService = fileURLToPath(new URL('./echo.service.ts', import.meta.url))
const unlimited = Number.MAX_SAFE_INTEGER

/** Nothing from a file or the environment of whoever runs the benchmark may change what is measured. */
export const configOf = ({ data, durability, quotas, agents, services }: HatchwayOptions) => {
  const { model, ...chosen } = agents ?? {}
  return host.loadConfig({
    data,
    cwd: data,
    env: {},
    overrides: {
      durability,
      logLevel: 'warn',
      // Rows about the hatch measure nothing else.
      agents: agents === undefined ? { enabled: 'no' } : { enabled: 'yes', ...chosen },
      ...(model === undefined ? {} : { model: { provider: 'compatible', name: 'stand-in', url: model } }),
      web: { enabled: 'no' },
      ...(services ? { services: { plugins: [echoService] } } : {}),
      ...(quotas === 'unlimited'
        ? { limits: { commandsPerMinute: unlimited, filesWaiting: unlimited } }
        : {}),
    },
  })
}

export const registerGroups = async (options: HatchwayOptions): Promise<void> => {
  // each registration is a commit of its own; that they survive a power loss is not what is measured
  const config = await configOf({ ...options, durability: 'process' })
  const { dialect, agents, telegram } = options
  const jidFor = telegram ? telegramJidOf : agents === undefined ? jidOf : chatJidOf
  await host.registerGroups(
    config,
    Array.from({ length: options.groups }, (_, group) => ({
      folder: folderOf(group),
      jid: jidFor(group),
      name: folderOf(group),
      main: agents !== undefined && group === 0,
      dialect,
    })),
  )
}

/** Returns at once; `ready` resolves when whatever was waiting is handled. */
export const startDaemon = (options: HatchwayOptions): Daemon => {
  const daemon = configOf(options).then(host.startDaemon)
  return {
    ready: daemon.then(() => {}),
    async agentsReady() {
      const choice = await (await daemon).agentsReady
      if (choice === undefined) return 'agents are not started'
      return choice.sandbox === undefined ? choice.reason : undefined
    },
    sessions: async () => (await daemon).host.agents()?.queue.running().length ?? 0,
    async onSaid(stored) {
      const { chats } = (await daemon).host
      chats?.feed.subscribe(({ event }) => {
        if (event.kind === 'entry' && event.entry.direction === 'in') stored(event.entry.text)
      })
    },
    stop: async () => (await daemon).stop(),
  }
}

/** As `hatchway channels add` does it. */
export const addChannel = async (
  data: string,
  kind: string,
  settings: Record<string, unknown>,
): Promise<void> => {
  const config = await host.loadConfig({ data, cwd: data, env: {} })
  const { connect } = await import('@hatchway/host/api')
  const client = await connect(config)
  await client.post('/channels', { kind, settings }, z.unknown())
  await client.close()
}

export interface Chat {
  /** says it and waits for the first thing that is said back; in µs, from just before it is sent until it is read */
  ask(text: string): Promise<{ text: string; took: number }>
  close(): Promise<void>
}

const patience = 30_000

/** A person with a chat open, as the terminal has it: over the daemon's socket, and told by its events. */
export const openChat = async (data: string, group: number): Promise<Chat> => {
  const config = await host.loadConfig({ data, cwd: data, env: {} })
  // only whoever chats loads it: the daemon is measured in a process of this file, too
  const { connect, newEntryAnswer } = await import('@hatchway/host/api')
  const client = await connect(config)
  const jid = chatJidOf(group)
  const leaving = new AbortController()
  let heard: ((text: string, at: bigint) => void) | undefined
  const greeted = Promise.withResolvers<void>()
  const onEvent = (event: ChatEventAnswer) => {
    const at = process.hrtime.bigint()
    if (event.kind === 'hello') greeted.resolve()
    if (event.kind === 'entry' && event.entry.direction === 'out' && event.entry.jid === jid)
      heard?.(event.entry.text, at)
  }
  const listening = client.chatEvents('/api/events', onEvent, leaving.signal).catch(greeted.reject)
  await greeted.promise
  return {
    ask: text =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(reject, patience, new Error(`no answer within ${patience / 1000} s`))
        const start = process.hrtime.bigint()
        heard = (said, at) => {
          clearTimeout(timer)
          heard = undefined
          resolve({ text: said, took: Number(at - start) / 1000 })
        }
        client.post(`/api/chats/${encodeURIComponent(jid)}/messages`, { text }, newEntryAnswer).catch(reject)
      }),
    async close() {
      leaving.abort()
      await listening
      await client.close()
    },
  }
}
