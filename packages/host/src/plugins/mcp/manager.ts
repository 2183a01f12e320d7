import { isDeepStrictEqual } from 'node:util'
import { type Refusal, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { openPrivateFiles, type PrivateFiles } from '../../base/private-files.ts'
import { named } from '../../base/visible-text.ts'
import type { Service } from '../../commands/service-tools.ts'
import { type Answers, labelsFor, suggestionFor } from './labels.ts'
import { type Lending, lendingOf } from './lending.ts'
import { createLentServer, type LentServerOptions, messageLimit } from './lent-server.ts'
import { addedServerSchema, type LentServer, type LentServers, serverNameSchema } from './settings.ts'
import { type Timing, usualTiming } from './timing.ts'
import { tryServer } from './trial.ts'

/** Lent servers: those of the configuration, and those that people add and remove while the host runs. */
export interface LentServerManager {
  list(): readonly ListedServer[]
  /** starts it once and says what it has; nothing is kept */
  try(name: string, settings: unknown): Promise<Failed | Tried>
  /** the same, and from now on it is lent */
  add(name: string, settings: unknown, answers: Answers): Promise<Failed | Tried>
  /** one that is there */
  test(name: string): Promise<Failed | Tried>
  remove(name: string): Promise<Failed | { ok: true; removed: boolean }>
  /** for the catalogue of services */
  service: Service
}

export interface ListedServer {
  name: string
  settings: LentServer
  isAdded: boolean
  /** undefined: nothing of it runs here */
  state: { ok: boolean; text: string } | undefined
  /** how many are lent; undefined: nothing of it runs here */
  tools: number | undefined
}

type Failed = { ok: false; error: Refusal }
export interface Tried {
  ok: true
  suggestion: ReturnType<typeof suggestionFor>
  lending: Lending
}

export interface ManagerOptions {
  configured: LentServers
  folder(): string
  staging: string
  environment: NodeJS.ProcessEnv
  version: string
  /** false: servers can be added, and none is kept up */
  isDaemon: boolean
  /** aborted when the host stops */
  signal: AbortSignal
  leaveFile: LentServerOptions['leaveFile']
  log: Logger
  timing?: Partial<Timing>
}

/** Enough for what `mcp add` asks meanwhile. */
const mostTrials = 10

export function createManager(options: ManagerOptions): LentServerManager {
  const { configured, environment, version, log } = options
  const timing = { ...usualTiming, ...options.timing }
  let opened: PrivateFiles<LentServer> | undefined
  const files = () => {
    opened ??= openPrivateFiles(options.folder(), {
      suffix: '.server.json',
      schema: addedServerSchema,
      staging: options.staging,
    })
    return opened
  }
  const running = new Map<string, Service>()
  /** what was listed when it was tried, so that it is not started again to be added */
  const trials = new Map<string, { settings: LentServer; tools: readonly unknown[] }>()
  let started: Parameters<NonNullable<Service['start']>>[0] | undefined

  const isConfigured = (name: string) => Object.hasOwn(configured, name)
  const addedNames = () =>
    files()
      .names()
      .filter(name => !isConfigured(name))
  const settingsOf = (name: string): LentServer | undefined =>
    isConfigured(name)
      ? configured[name]
      : serverNameSchema.safeParse(name).success
        ? files().of(name)
        : undefined

  const open = (name: string, settings: LentServer): Service =>
    createLentServer({ name, settings, environment, version, timing, leaveFile: options.leaveFile })

  if (options.isDaemon) {
    for (const [name, settings] of Object.entries(configured)) running.set(name, open(name, settings))
    for (const name of addedNames()) {
      try {
        const settings = files().of(name)
        if (settings) running.set(name, open(name, settings))
      } catch (error) {
        log.error({ server: name, err: error }, 'an added MCP server cannot be read; add it again')
      }
    }
  }

  const startOne = async (service: Service) =>
    started && service.start?.({ ...started, log: started.log.child({ server: service.name }) })

  const listTools = async (
    name: string,
    settings: LentServer,
  ): Promise<Failed | { ok: true; tools: readonly unknown[] }> => {
    const tried = await tryServer({
      settings,
      environment,
      version,
      timing,
      limitBytes: messageLimit(settings),
      signal: options.signal,
      log,
    })
    if (tried.ok) return tried
    const message = [`The server ${name} ${tried.problem}.`, tried.detail].filter(Boolean).join('\n')
    return { ok: false, error: refusal('service_failed', message) }
  }

  const triedWith = (name: string, settings: LentServer, tools: readonly unknown[]): Tried => ({
    ok: true,
    suggestion: suggestionFor(settings, tools),
    lending: lendingOf(name, settings, tools),
  })

  /** What was given, checked; why it cannot be added. */
  const checked = (name: string, given: unknown): Failed | { ok: true; settings: LentServer } => {
    const failed = (code: 'invalid_field' | 'conflict', message: string): Failed => ({
      ok: false,
      error: refusal(code, message),
    })
    const wrongName = serverNameSchema.safeParse(name).error?.issues[0]?.message
    if (wrongName !== undefined) return failed('invalid_field', `The name ${wrongName}.`)
    if (isConfigured(name))
      return failed(
        'conflict',
        `The configuration has a server ${name}. Change it there, or choose another name.`,
      )
    const parsed = addedServerSchema.safeParse(given)
    if (parsed.success) return { ok: true, settings: parsed.data }
    const [issue] = parsed.error.issues
    return failed('invalid_field', `${issue?.path.join('.') || name}: ${issue?.message}`)
  }

  const tryIt: LentServerManager['try'] = async (name, given) => {
    const wanted = checked(name, given)
    if (!wanted.ok) return wanted
    const { settings } = wanted
    const listed = await listTools(name, settings)
    if (!listed.ok) return listed
    trials.delete(name)
    trials.set(name, { settings, tools: listed.tools })
    for (const old of [...trials.keys()].slice(0, -mostTrials)) trials.delete(old)
    return triedWith(name, settings, listed.tools)
  }

  /** One after the other: two at once would start two programs and know of one. */
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.then(work)
    turn = done.catch(() => {})
    return done
  }

  const take = async (name: string) => {
    const service = running.get(name)
    running.delete(name)
    await service?.stop?.()
  }

  return {
    list: () =>
      [...Object.keys(configured), ...addedNames()].map(name => {
        const about = { name, isAdded: !isConfigured(name) }
        const service = running.get(name)
        try {
          const settings = settingsOf(name) ?? {}
          return { ...about, settings, state: service?.state?.(), tools: service?.tools().length }
        } catch {
          const state = { ok: false, text: 'Its file cannot be read. Add it again.' }
          return { ...about, settings: {}, state, tools: undefined }
        }
      }),
    try: tryIt,
    add: (name, given, answers) =>
      inTurn(async () => {
        const wanted = checked(name, given)
        if (!wanted.ok) return wanted
        const before = trials.get(name)
        if (!before || !isDeepStrictEqual(before.settings, wanted.settings)) {
          const tried = await tryIt(name, given)
          if (!tried.ok) return tried
        }
        const tools = trials.get(name)?.tools ?? []
        trials.delete(name)
        const shown = lendingOf(name, wanted.settings, tools).tools
        const labelled = labelsFor(answers, shown)
        const settings = {
          ...wanted.settings,
          labels: labelled.labels,
          tools: chosenFrom(wanted.settings, labelled),
        }
        files().put(name, settings)
        await take(name)
        if (options.isDaemon) {
          const service = open(name, settings)
          running.set(name, service)
          await startOne(service)
        }
        started?.changed()
        log.info({ server: name }, 'an MCP server was added')
        return triedWith(name, settings, tools)
      }),
    async test(name) {
      const settings = settingsOf(name)
      if (!settings)
        return {
          ok: false,
          error: refusal('not_found', `There is no server ${named(name)}. Run: npx hatchway mcp list`),
        }
      const listed = await listTools(name, settings)
      return listed.ok ? triedWith(name, settings, listed.tools) : listed
    },
    remove: name =>
      inTurn(async () => {
        if (isConfigured(name))
          return {
            ok: false,
            error: refusal('wrong_state', `The server ${name} is in the configuration. Remove it there.`),
          }
        // The name becomes a path.
        if (!serverNameSchema.safeParse(name).success) return { ok: true, removed: false }
        const removed = files().remove(name)
        await take(name)
        started?.changed()
        return { ok: true, removed }
      }),
    service: {
      name: 'mcp',
      tools: () => [...running.values()].flatMap(service => service.tools()),
      members: () => [...running.values()],
      async start(context) {
        started = context
        await Promise.all([...running.values()].map(startOne))
      },
      async stop() {
        started = undefined
        await Promise.all([...running.values()].map(service => service.stop?.()))
      },
    },
  }
}

/** Those of the tools that were shown, with their labels, and with what was said of them. */
function chosenFrom(
  { tools: wanted }: LentServer,
  { tools: shown }: ReturnType<typeof labelsFor>,
): LentServer['tools'] {
  const settings = wanted === undefined || Array.isArray(wanted) ? {} : wanted
  return Object.fromEntries(
    Object.entries(shown).map(([name, labelled]) => [name, { ...settings[name], ...labelled }]),
  )
}
