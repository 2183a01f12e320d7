import { z } from 'zod'
import { type Config, type GivenPlugin, groupSettingNames } from './schema.ts'
import { leavesOf, textValue, variableOf } from './settings.ts'

/** The values that a plugin gets: those of the file, with those of the environment over them. */
export function pluginSettings(
  { name, settings, input }: GivenPlugin,
  env: NodeJS.ProcessEnv,
): { ok: true; settings: unknown } | { ok: false; problems: string[] } {
  const values: unknown = copyOf(input)
  for (const leaf of leavesOf(z.toJSONSchema(settings, { io: 'input', unrepresentable: 'any' }), [])) {
    const text = env[variableOf([name.replaceAll('-', '_'), ...leaf.path])]
    if (text !== undefined && text !== '') setAt(values, leaf.path, textValue(leaf, text))
  }
  const parsed = settings.safeParse(values)
  return parsed.success
    ? { ok: true, settings: parsed.data }
    : { ok: false, problems: parsed.error.issues.map(issue => `${name}: ${sentence(issue)}`) }
}

/** What is wrong with the plugins of a configuration and with what it says about them, each a sentence. */
export function pluginProblems(config: Config, env: NodeJS.ProcessEnv): string[] {
  const { plugins, groups } = config
  const names = plugins.map(({ name }) => name)
  const twice = names.filter((name, i) => names.indexOf(name) !== i)
  const taken = names.filter(name => Object.hasOwn(config, name))
  return [
    ...twice.map(name => `plugins has ${name} more than once.`),
    ...taken.map(name => `plugins has one named ${name}, which is the name of a setting of Hatchway.`),
    ...plugins.flatMap(plugin => {
      const result = pluginSettings(plugin, env)
      return result.ok ? [] : result.problems
    }),
    ...Object.entries(groups).flatMap(([folder, settings]) =>
      Object.entries(settings).flatMap(([key, value]) =>
        groupProblems(config, `groups.${folder}`, key, value),
      ),
    ),
  ]
}

function groupProblems({ plugins }: Config, group: string, key: string, value: unknown): string[] {
  if (groupSettingNames.includes(key)) return []
  const schema = plugins.find(({ name }) => name === key)?.groupSettings
  if (!schema) {
    const known = [...groupSettingNames, ...plugins.flatMap(one => (one.groupSettings ? one.name : []))]
    return [`${group}.${key} is not a setting; there are ${known.join(', ')}.`]
  }
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : parsed.error.issues.map(issue => `${group}.${key}: ${sentence(issue)}`)
}

/** Settings may hold functions and objects of classes, which stay as they are. */
const copyOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyOf(inner)]))
    : value

const sentence = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? `${message}.` : `${path.map(String).join('.')}: ${message}.`

function setAt(tree: unknown, [key, ...rest]: readonly string[], value: unknown): void {
  if (key === undefined || typeof tree !== 'object' || tree === null) return
  if (rest.length === 0) return void Object.assign(tree, { [key]: value })
  if (!(key in tree)) Object.assign(tree, { [key]: {} })
  setAt(Object.entries(tree).find(([name]) => name === key)?.[1], rest, value)
}
