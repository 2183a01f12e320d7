import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Refusal, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Layout } from '../../base/layout.ts'
import { type Channel, type ChannelStatus, DeliveryError } from '../../chat/channels/types.ts'
import type { ChatStore } from '../../store/types.ts'
import { type Account, type Accounts, openAccounts } from './accounts.ts'
import { installChannel } from './install.ts'
import type { ChannelKind, ChannelModule, ChannelOptions } from './kind.ts'
import { kindOf, kinds } from './kinds.ts'
import { createLibrary, findLibrary } from './library.ts'

/** The channels that somebody has added: they come and go while the host runs. */
export interface ChannelManager {
  list(): readonly ListedChannel[]
  /** asks the platform, keeps the account, and connects; what is wrong with it otherwise */
  add(kind: string, settings: Record<string, unknown>): Promise<Added>
  /** asks the platform whether it still lets us in */
  test(kind: string): Promise<Added>
  remove(kind: string): Promise<boolean>
  /** another text whenever the list would show something else */
  sign(): string
  start(): Promise<void>
  /**
   * One for each kind, which holds back what is for a channel that somebody has added and that is not open, or cannot be
   * used. Without it the log, which reaches every chat, would have it.
   */
  unopened: readonly Channel[]
}

export interface ListedChannel {
  kind: ChannelKind
  isInstalled: boolean
  isAdded: boolean
  /** undefined: nothing of it runs here */
  status: ChannelStatus | undefined
  problem: string | undefined
}

/** `as`: who we are on the platform, in a line for people. */
export type Added = { ok: true; as: string; next: readonly string[] } | { ok: false; error: Refusal }

export interface ManagerOptions {
  folder(): string
  layout: Layout
  /** false: accounts can be changed, and nothing is connected */
  isDaemon: boolean
  attach(channel: Channel): Promise<() => Promise<void>>
  memory: Pick<ChatStore, 'forgetChannel'>
  readFile(id: string): Promise<Buffer | undefined>
  assistant: string
  log: Logger
  now(): number
}

/** How many wait changes with each message; whether any does is what people look for. */
const signOf = (status: ChannelStatus | undefined) =>
  status && { ...status, pace: (status.pace?.waiting ?? 0) > 0 }

/** A host opens its channels within a few of these. */
const unopenedMs = 500

export function createManager(options: ManagerOptions): ChannelManager {
  const { layout, log, now, readFile, assistant } = options
  let opened: Accounts | undefined
  const accounts = () => {
    opened ??= openAccounts(options.folder(), layout.staging)
    return opened
  }
  let added: Set<string> | undefined
  /** which kinds somebody has added; asked for each message, so they are not read each time */
  const isAdded = () => {
    added ??= new Set(accounts().names())
    return added
  }
  const running = new Map<string, { channel: Channel; detach(): Promise<void> }>()
  const problems = new Map<string, string>()

  /** What a kind is given, and its code; the refusal of settings that are none. */
  const prepare = async (
    kind: ChannelKind,
    given: unknown,
  ): Promise<
    | { ok: true; module: ChannelModule<unknown>; with: ChannelOptions<unknown> }
    | { ok: false; error: Refusal }
  > => {
    const settings = kind.settings.safeParse(given)
    if (!settings.success) {
      const [issue] = settings.error.issues
      return {
        ok: false,
        error: refusal('invalid_field', `${issue?.path.join('.') || kind.name}: ${issue?.message}`),
      }
    }
    if (findLibrary(layout, kind) === undefined) {
      return {
        ok: false,
        error: refusal(
          'unavailable',
          `${kind.title} is not installed. Run: npx hatchway channels add ${kind.name}`,
        ),
      }
    }
    return {
      ok: true,
      module: await kind.load(),
      with: {
        settings: settings.data,
        library: createLibrary(layout, kind),
        readFile,
        folder() {
          const path = join(options.folder(), kind.name)
          mkdirSync(path, { recursive: true, mode: 0o700 })
          return path
        },
        assistant,
        log: log.child({ channel: kind.name }),
        now,
      },
    }
  }

  /** What its library needs, where that is not there yet; why that did not work. */
  const install = async (kind: ChannelKind): Promise<string | undefined> => {
    if (findLibrary(layout, kind) !== undefined) return undefined
    try {
      await installChannel(kind.name, { layout })
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  const check = async (kind: ChannelKind, settings: unknown): Promise<Added> => {
    const prepared = await prepare(kind, settings)
    if (!prepared.ok) return prepared
    try {
      return { ok: true, as: await prepared.module.check(prepared.with), next: kind.next }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return { ok: false, error: refusal('unavailable', `${kind.title} says: ${reason}`) }
    }
  }

  const take = async (kind: string) => {
    await running.get(kind)?.detach()
    running.delete(kind)
    problems.delete(kind)
  }

  const begin = async ({ kind: name, settings }: Account) => {
    await take(name)
    const kind = kindOf(name)
    if (!kind || !options.isDaemon) return
    const prepared = await prepare(kind, settings)
    if (!prepared.ok) {
      problems.set(name, prepared.error.message)
      log.error({ channel: name, reason: prepared.error.message }, 'a channel cannot be used')
      return
    }
    const channel = prepared.module.open(prepared.with)
    running.set(name, { channel, detach: await options.attach(channel) })
  }

  const unopenedOf = ({ name, title }: ChannelKind): Channel => {
    const holdBack = async () => {
      const problem = problems.get(name)
      if (problem !== undefined) throw new Error(problem)
      throw new DeliveryError(`${title} is not open yet.`, { retryAfterMs: unopenedMs })
    }
    return {
      name,
      messageLimit: Number.POSITIVE_INFINITY,
      reaches: jid => jid.startsWith(`${name}:`) && isAdded().has(name),
      problem: () => problems.get(name),
      send: holdBack,
      edit: holdBack,
    }
  }

  const unknown = (name: string) =>
    ({
      ok: false,
      error: refusal(
        'not_found',
        `There is no channel ${JSON.stringify(name)}. There are: ${kinds.map(kind => kind.name).join(', ')}.`,
      ),
    }) as const

  return {
    unopened: kinds.map(unopenedOf),
    list: () =>
      kinds.map(kind => {
        const channel = running.get(kind.name)?.channel
        return {
          kind,
          isInstalled: findLibrary(layout, kind) !== undefined,
          isAdded: accounts().of(kind.name) !== undefined,
          status: channel?.status?.(),
          problem: problems.get(kind.name) ?? channel?.problem?.(),
        }
      }),
    async add(name, settings) {
      const kind = kindOf(name)
      if (!kind) return unknown(name)
      const failure = await install(kind)
      if (failure !== undefined) return { ok: false, error: refusal('unavailable', failure) }
      const checked = await check(kind, settings)
      if (!checked.ok) return checked
      const account = { kind: name, settings }
      accounts().put(name, account)
      isAdded().add(name)
      await begin(account)
      return checked
    },
    async test(name) {
      const kind = kindOf(name)
      if (!kind) return unknown(name)
      const account = accounts().of(name)
      if (!account)
        return {
          ok: false,
          error: refusal('not_found', `${kind.title} is not added. Run: npx hatchway channels add ${name}`),
        }
      return check(kind, account.settings)
    },
    async remove(name) {
      // The name becomes a path.
      if (!kindOf(name)) return false
      await take(name)
      const wasThere = accounts().remove(name)
      isAdded().delete(name)
      rmSync(join(options.folder(), name), { recursive: true, force: true })
      options.memory.forgetChannel(name)
      return wasThere
    },
    sign: () =>
      JSON.stringify([
        [...isAdded()],
        [...problems],
        [...running].map(([name, { channel }]) => [name, channel.problem?.(), signOf(channel.status?.())]),
      ]),
    async start() {
      for (const name of accounts().names()) {
        const account = accounts().of(name)
        if (account) await begin(account)
      }
    },
  }
}
