import { statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { z } from 'zod'
import { chosenAtRunTime, type ModelSettings, modelFromText, modelProblems } from './model.ts'
import { configFiles } from './names.ts'
import { pluginProblems } from './plugin-settings.ts'
import { builtInProblems, type Config, type ConfigInput, configSchema } from './schema.ts'
import { type Setting, settings, settingsIn, textValue, variableOf } from './settings.ts'
import { problemsOf } from './web.ts'

export class ConfigError extends Error {
  override name = 'ConfigError'
}

export interface LoadOptions {
  /** the configuration file; left out: HATCHWAY_CONFIG, then `hatchway.config.{ts,mts,mjs,js}` in `cwd`, if there is one */
  file?: string | undefined
  /** the data directory, as the command line gave it */
  data?: string | undefined
  /** other values from the command line */
  overrides?: ConfigInput | undefined
  env?: NodeJS.ProcessEnv | undefined
  cwd?: string | undefined
}

export interface ExplainedConfig {
  config: Config
  /** the file that was read */
  file: string | undefined
  values: (Setting & { value: string | number | undefined; source: string })[]
}

type Tree = Record<string, unknown>

const byDefault = 'default'
const onCommandLine = 'command line'

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Command line over environment over file over defaults. Throws `ConfigError` with a line for each wrong value. */
export async function loadConfig(options: LoadOptions = {}): Promise<Config> {
  return (await read(options)).config
}

/** The same, with where each value came from. */
export async function explainConfig(options: LoadOptions = {}): Promise<ExplainedConfig> {
  const { config, file } = await read(options)
  return { config, file, values: explained(config) }
}

/** A configuration that a program made for itself, and whose values people may look at all the same. */
export function configFrom(input: ConfigInput, source: string): Config {
  const sources = new Map<string, string>()
  const taken: Tree = {}
  overlay(taken, spelledOut({ ...input }), [], path => sources.set(path.join('.'), source))
  const config = withUsualDriver(configSchema.parse(taken), sources)
  sourcesOf.set(config, sources)
  return config
}

/** where the values of configurations that were loaded came from */
const sourcesOf = new WeakMap<Config, ReadonlyMap<string, string>>()

/** Every value of a configuration and where it came from, as far as that is known. */
export function explained(config: Config): ExplainedConfig['values'] {
  const sources = sourcesOf.get(config)
  return settings().map(setting => {
    const value = valueAt(config, setting.path)
    return {
      ...setting,
      value: typeof value === 'string' || typeof value === 'number' ? value : undefined,
      source: sources ? (sources.get(setting.name) ?? byDefault) : 'not known',
    }
  })
}

/**
 * The same values in an object of its own, and a way to put another model into it: what an operator chooses while the
 * host runs. Whoever was asked by the concierge is then asked by the agent that can speak with any model.
 */
export function withChangeableModel(given: Config): {
  config: Config
  use(model: ModelSettings | undefined): void
} {
  const config = { ...given, agents: { ...given.agents } }
  const known = sourcesOf.get(given)
  if (known) sourcesOf.set(config, known)
  return {
    config,
    use(model) {
      config.model = model ? chosenAtRunTime(model) : given.model
      const { driver } = given.agents
      config.agents.driver = model && driver === 'concierge' ? 'assistant' : driver
      if (!known) return
      const names = [
        'model.provider',
        'model.name',
        ...(config.agents.driver === driver ? [] : ['agents.driver']),
      ]
      const chosen = names.map(name => [name, 'chosen by an operator'] as const)
      sourcesOf.set(config, model ? new Map([...known, ...chosen]) : known)
    },
  }
}

async function read({ data, overrides, env = process.env, cwd = process.cwd(), ...options }: LoadOptions) {
  const file = findFile(options.file ?? (env.HATCHWAY_CONFIG || undefined), cwd)
  const input: Tree = {}
  const sources = new Map<string, string>()

  if (file !== undefined) {
    const fromFile = spelledOut(await importFile(file))
    overlay(input, fromFile, [], path => sources.set(path.join('.'), file))
    if (typeof input.data === 'string') input.data = resolve(dirname(file), input.data)
    const services = isTree(input.services) ? input.services : {}
    if (Array.isArray(services.plugins)) {
      services.plugins = services.plugins.map(path =>
        typeof path === 'string' ? resolve(dirname(file), path) : path,
      )
    }
  }
  if (env.HATCHWAY_MODEL) {
    // Not laid over the file's: a key must not go to the address of another provider.
    input.model = modelFromText(env.HATCHWAY_MODEL)
    for (const name of [...sources.keys()]) if (/^model(\.|$)/.test(name)) sources.delete(name)
    for (const name of ['model', 'model.provider', 'model.name']) sources.set(name, 'HATCHWAY_MODEL')
  }
  for (const setting of settingsIn(env)) {
    const variable = variableOf(setting.path)
    overlay(input, nested(setting.path, textValue(setting, env[variable] ?? '')), [], path =>
      sources.set(path.join('.'), variable),
    )
  }
  const line = spelledOut({ ...overrides, ...(data === undefined ? {} : { data }) })
  overlay(input, line, [], path => sources.set(path.join('.'), onCommandLine))

  const parsed = configSchema.safeParse(input)
  const problems = parsed.success
    ? [...contradictions(parsed.data, sources), ...pluginProblems(parsed.data, env)]
    : parsed.error.issues.flatMap(issue => explainIssue(issue, input, sources))
  if (!parsed.success || problems.length > 0) {
    throw new ConfigError(
      `The configuration cannot be used.\n${problems.map(line => `  ${line}`).join('\n')}`,
    )
  }
  const config = withUsualDriver({ ...parsed.data, data: resolve(cwd, parsed.data.data) }, sources)
  sourcesOf.set(config, sources)
  return { config, file }
}

/** The same with each model as an object. */
function spelledOut(input: Tree): Tree {
  const whole = (of: Tree): Tree =>
    typeof of.model === 'string' ? { ...of, model: modelFromText(of.model) } : of
  if (!isTree(input.groups)) return whole(input)
  const groups = Object.entries(input.groups).map(([folder, group]) => [
    folder,
    isTree(group) ? whole(group) : group,
  ])
  return whole({ ...input, groups: Object.fromEntries(groups) })
}

/** Whoever names a model and no agent gets the agent that can speak with any. */
function withUsualDriver(config: Config, sources: ReadonlyMap<string, string>): Config {
  const isChosen = config.model.provider === undefined || sources.has('agents.driver')
  const driver = isChosen ? config.agents.driver : 'assistant'
  const groups = Object.entries(config.groups).map(([folder, group]) => {
    const needsOne = group.model !== undefined && group.driver === undefined && driver === 'concierge'
    return [folder, needsOne ? { ...group, driver: 'assistant' as const } : group]
  })
  return { ...config, agents: { ...config.agents, driver }, groups: Object.fromEntries(groups) }
}

function findFile(asked: string | undefined, cwd: string): string | undefined {
  const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
  if (asked === undefined) return configFiles.map(name => join(cwd, name)).find(isFile)
  const path = resolve(cwd, asked)
  if (!isFile(path)) throw new ConfigError(`There is no configuration file ${path}.`)
  return path
}

async function importFile(file: string): Promise<Tree> {
  if (/\.[mc]?ts$/.test(file) && !process.features.typescript)
    throw new ConfigError(
      `${file} is TypeScript, which Node ${process.versions.node} does not read. Call it hatchway.config.mjs and leave out its types, or use Node 22.18 or newer.`,
    )
  let loaded: unknown
  try {
    loaded = await import(pathToFileURL(file).href)
  } catch (error) {
    const reason = error instanceof Error ? error.message : error
    const remedy = /outside a module|Unexpected token 'export'/.test(String(reason))
      ? ` Its folder’s package.json does not say "type": "module": rename the file to ${basename(file).replace(/\.(?=[jt]s$)/, '.m')}.`
      : ''
    throw new ConfigError(`${file} cannot be loaded: ${reason}${remedy && '.'}${remedy}`, { cause: error })
  }
  const input = isTree(loaded) ? loaded.default : undefined
  if (!isTree(input)) throw new ConfigError(`${file} must end in: export default defineConfig({ … })`)
  return input
}

const nested = (path: readonly string[], value: unknown): Tree => {
  const [key = '', ...rest] = path
  return { [key]: rest.length === 0 ? value : nested(rest, value) }
}

function overlay(target: Tree, source: Tree, path: string[], took: (path: string[]) => void): void {
  for (const [key, value] of Object.entries(source)) {
    if (value === undefined) continue
    const here = [...path, key]
    const below = target[key]
    if (isTree(value)) {
      const inner: Tree = isTree(below) ? below : {}
      target[key] = inner
      overlay(inner, value, here, took)
    } else {
      target[key] = value
    }
    took(here)
  }
}

const valueAt = (tree: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((value, key) => (isTree(value) ? value[String(key)] : undefined), tree)

const place = (sources: ReadonlyMap<string, string>, name: string) => {
  const source = sources.get(name)
  return source === undefined ? '' : source === onCommandLine ? ' on the command line' : ` in ${source}`
}

function explainIssue(issue: z.core.$ZodIssue, input: Tree, sources: ReadonlyMap<string, string>): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key => {
      const name = [...issue.path, key].join('.')
      const depth = issue.path.length
      const siblings = settings()
        .filter(({ path }) => path.slice(0, depth).join('.') === issue.path.join('.'))
        .map(({ path }) => path.slice(0, depth + 1).join('.'))
      return `${name}${place(sources, name)} is not a setting; there are ${[...new Set(siblings)].join(', ')}.`
    })
  }
  const name = issue.path.join('.')
  const allowed = settings().find(setting => setting.name === name)?.allowed
  const isInside = settings().some(
    ({ path }) => path.length < issue.path.length && name.startsWith(`${path.join('.')}.`),
  )
  // Inside a setting that is an object of its own the schema's words are the best there are; what stands there may be secret.
  if (allowed === undefined && isInside) return [`${name}${place(sources, name)}: ${issue.message}.`]
  const value = JSON.stringify(valueAt(input, issue.path)) ?? 'unset'
  return [
    `${name}${place(sources, name)} is ${value}; it must be ${allowed ?? `an object with settings of ${name}`}.`,
  ]
}

function contradictions(config: Config, sources: ReadonlyMap<string, string>): string[] {
  const ofPlugins = builtInProblems(config).map(
    ({ setting, problem }) => `${setting}${place(sources, setting)} ${problem}`,
  )
  const ofModels = [
    ...modelProblems(config.model).map(({ setting, problem }) => `model.${setting} ${problem}`),
    ...Object.entries(config.groups).flatMap(([folder, { model }]) =>
      model
        ? modelProblems(model).map(({ setting, problem }) => `groups.${folder}.model.${setting} ${problem}`)
        : [],
    ),
  ]
  const wrong = [...ofPlugins, ...ofModels, ...problemsOf(config.web)]
  if (config.pollMinMs <= config.pollMaxMs) return wrong
  return [
    ...wrong,
    `pollMinMs${place(sources, 'pollMinMs')} is ${config.pollMinMs}, which is more than pollMaxMs${place(sources, 'pollMaxMs')}, ${config.pollMaxMs}.`,
  ]
}
