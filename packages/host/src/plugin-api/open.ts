import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { isCommandType, toolNameSchema } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { PluginStates } from '../api/host.ts'
import type { PluginRoutes, PublicRoutes, Route } from '../api/route.ts'
import type { Fault } from '../base/fault.ts'
import type { Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Retries } from '../base/retry.ts'
import type { Channel } from '../chat/channels/types.ts'
import type { Effect } from '../commands/effects.ts'
import type { Service, Work } from '../commands/service-tools.ts'
import type { CommandDefinition } from '../commands/types.ts'
import type { RunHooks } from '../runs/hooks.ts'
import type { TaskKind } from '../runs/scheduler/types.ts'
import { folderContext } from '../store/contexts.ts'
import type { Store } from '../store/types.ts'
import type { BuiltInHost, Contributions, PluginHost, PluginManifest } from './types.ts'

/** A plugin whose settings have been checked. */
export interface ConfiguredPlugin {
  manifest: PluginManifest
  settings: unknown
  groupSettings(folder: string): unknown
  configuredGroups(): readonly string[]
  /** part of this release: it uses the protocol's own names, and fails with the host */
  isBuiltIn: boolean
}

/** What the kernel lends to plugins. */
export interface PluginKernel {
  store: Store
  layout: Layout
  owners: Owners
  limits: BuiltInHost['limits']
  timezone: string
  durability: BuiltInHost['durability']
  environment: NodeJS.ProcessEnv
  isDaemon: boolean
  runsAgents: boolean
  log: Logger
  signal: AbortSignal
  fault: Fault
  retries: Retries
  supervision: BuiltInHost['supervision']
  /** after the commit */
  publish(effects: readonly Effect[]): void
  perform: PluginHost['perform']
  tellAgent(folder: string, key: string, text: string): void
  /** before others can read what the group has written */
  share(folder: string, shared: string, readers: readonly string[]): void
  readAttachment: BuiltInHost['readAttachment']
  leaveFile: PluginHost['leaveFile']
  attach: PluginHost['attach']
  now(): Date
}

/** What all plugins together add, and how each of them does. */
export interface OpenPlugins extends PluginStates {
  commands: readonly CommandDefinition[]
  work: readonly Work[]
  services: readonly Service[]
  channels: readonly Channel[]
  taskKinds: readonly TaskKind[]
  runs: readonly RunHooks[]
  routes: PluginRoutes
  publicRoutes: PublicRoutes
  forgetGroup(folder: string): void
  start(): Promise<void>
  stop(): Promise<void>
}

interface Opened extends ConfiguredPlugin {
  contributions: Contributions
}

const unseen = 'a plugin could not report its status'

/** Opens plugins in the order of the list. One that is not ours and fails is reported and left out. */
export async function openPlugins(
  configured: readonly ConfiguredPlugin[],
  kernel: PluginKernel,
): Promise<OpenPlugins> {
  const { log } = kernel
  const opened: Opened[] = []
  const broken: Service[] = []
  for (const plugin of configured) {
    const { name } = plugin.manifest
    try {
      const { open } = await plugin.manifest.load()
      const contributions = await open(hostFor(plugin, kernel))
      const problem = problemWith(plugin, contributions)
      if (problem !== undefined) throw new Error(problem)
      opened.push({ ...plugin, contributions: marked(plugin, contributions) })
    } catch (error) {
      if (plugin.isBuiltIn) throw error
      const reason = error instanceof Error ? error.message : String(error)
      log.error({ plugin: name, reason }, 'a plugin of the configuration cannot be used')
      broken.push({ name, tools: () => [], state: () => ({ ok: false, text: reason }) })
    }
  }
  const each = async (
    plugins: readonly Opened[],
    call: (contributions: Contributions) => Promise<void> | void,
    otherwise: string,
  ) => {
    for (const { contributions, manifest } of plugins) {
      try {
        await call(contributions)
      } catch (error) {
        log.error({ err: error, plugin: manifest.name }, otherwise)
      }
    }
  }
  /** What each of them says. One that fails says nothing, and must not silence the others. */
  const answers = <T>(ask: (contributions: Contributions) => T | undefined, otherwise: string): T[] =>
    opened.flatMap(({ contributions, manifest }) => {
      try {
        return ask(contributions) ?? []
      } catch (error) {
        log.error({ err: error, plugin: manifest.name }, otherwise)
        return []
      }
    })
  const all = <T>(part: (contributions: Contributions) => readonly T[] | undefined): T[] =>
    opened.flatMap(({ contributions }) => part(contributions) ?? [])
  const mounted = (
    part: (contributions: Contributions) => readonly Route<unknown>[] | undefined,
  ): PluginRoutes =>
    opened.flatMap(({ contributions, isBuiltIn, manifest: { name } }) => {
      const routes = part(contributions)
      return routes ? [{ path: isBuiltIn ? '' : `/plugins/${name}`, routes }] : []
    })

  return {
    commands: all(({ commands }) => commands),
    work: all(({ work }) => work),
    services: [...all(({ services }) => services), ...broken],
    // A stranger's channel may take chats from ours.
    channels: [false, true].flatMap(isBuiltIn =>
      opened.flatMap(plugin => (plugin.isBuiltIn === isBuiltIn ? (plugin.contributions.channels ?? []) : [])),
    ),
    taskKinds: all(({ taskKinds }) => taskKinds),
    runs: all(({ runs }) => runs && [runs]),
    routes: mounted(({ routes }) => routes),
    publicRoutes: {
      routes: mounted(({ publicRoutes }) => publicRoutes),
      needWebServer: opened.some(({ contributions }) => contributions.needsWebServer === true),
    },
    forgetGroup(folder) {
      for (const { contributions } of opened) contributions.forgetGroup?.(folder)
    },
    async start() {
      for (const { contributions, manifest, isBuiltIn } of opened) {
        try {
          await contributions.start?.()
        } catch (error) {
          if (isBuiltIn) throw error
          log.error({ err: error, plugin: manifest.name }, 'a plugin could not be started')
        }
      }
    },
    signs: () => answers(({ signs }) => signs?.(), unseen).flatMap(signs => Object.entries(signs)),
    waiting: () => Object.assign({}, ...answers(({ waiting }) => waiting?.(), unseen)),
    failed: () =>
      void answers(({ failed }) => failed?.(), 'a plugin failed while it was told that no agents run'),
    ready: () => each(opened, ({ ready }) => ready?.(), 'a plugin failed after the start'),
    stop: () => each(opened.toReversed(), ({ stop }) => stop?.(), 'a plugin could not be stopped properly'),
  }
}

/** What a plugin is given. What only ours may use is not there for others, whatever they claim its type to be. */
function hostFor(plugin: ConfiguredPlugin, kernel: PluginKernel): PluginHost {
  const { manifest, settings, groupSettings, configuredGroups, isBuiltIn } = plugin
  const { store, isDaemon, runsAgents, timezone, durability, environment, signal, now } = kernel
  const { name, migrations, tables } = manifest
  const own = store.pluginTables({ name, migrations, tables, isBuiltIn })
  const folder = join(kernel.layout.state, 'plugins', name)
  const host: PluginHost = {
    settings,
    groupSettings,
    configuredGroups,
    timezone,
    durability,
    environment,
    log: kernel.log.child({ plugin: name }),
    signal,
    isDaemon,
    runsAgents,
    now,
    folder() {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      return folder
    },
    sql: own.sql,
    group: store.group,
    groups: store.groups,
    tasks: store.tasks,
    transaction(work) {
      const effects: Effect[] = []
      const result = store.transaction(transaction => work(transaction, effect => effects.push(effect)))
      if (effects.length > 0) kernel.publish(effects)
      return result
    },
    perform: kernel.perform,
    taint: (group, read, source) =>
      store.transaction(transaction =>
        transaction.addTaint(group, folderContext, read, `${name}: ${source}`, now().getTime()),
      ),
    share: (group, shared, readers) => kernel.share(group, ownName(plugin, shared), readers),
    tellAgent: (group, key, text) => kernel.tellAgent(group, ownName(plugin, key), text),
    readAttachment: kernel.readAttachment,
    leaveFile: kernel.leaveFile,
    attach: kernel.attach,
  }
  if (!isBuiltIn) return host
  const { layout, owners, limits, fault, retries, supervision } = kernel
  const lent: Omit<BuiltInHost, keyof PluginHost> = {
    ...{ store, layout, owners, limits, fault, retries, supervision },
  }
  return { ...host, ...lent }
}

/** Names that a plugin gives are told apart by whose they are. Ours have had theirs since before there were plugins. */
const ownName = ({ manifest, isBuiltIn }: ConfiguredPlugin, name: string): string =>
  isBuiltIn ? name : `${manifest.name}:${name}`

/** What would collide with the kernel or with another plugin, in words. */
function problemWith({ manifest: { name }, isBuiltIn }: ConfiguredPlugin, contributions: Contributions) {
  for (const { type } of contributions.commands ?? []) {
    const isAllowed = isBuiltIn ? isCommandType(type) : type.startsWith(`${name}.`)
    if (!isAllowed) return `The command ${type} must be named ${name}.… like all commands of this plugin.`
  }
  for (const service of contributions.services ?? []) {
    for (const tool of service.tools()) {
      if (!toolNameSchema.safeParse(tool.name).success)
        return `${JSON.stringify(tool.name)} is not a name for a tool; use letters, digits and "_".`
    }
  }
  return undefined
}

/** What a stranger's plugin adds says whose it is. */
function marked(plugin: ConfiguredPlugin, contributions: Contributions): Contributions {
  if (plugin.isBuiltIn) return contributions
  const { name, version } = plugin.manifest
  const { commands = [], runs = {} } = contributions
  return {
    ...contributions,
    commands: commands.map(command => ({ ...command, provider: `${name} ${version}` })),
    runs: {
      ...runs,
      shares(folder) {
        const shared = runs.shares?.(folder)
        return shared === undefined ? undefined : ownName(plugin, shared)
      },
    },
  }
}
