import { parseArgs } from 'node:util'
import type { ObjectSchema } from '../mcp/tool.ts'

/** The arguments of a tool as flags, made from its JSON Schema. What a value may be is checked by the tool and the host. */
export interface Flag {
  /** as the tool calls it */
  name: string
  kind: 'text' | 'number' | 'boolean' | 'json'
  /** it is given again for each item */
  isList: boolean
  isRequired: boolean
  allowed: readonly string[] | undefined
  description: string
}

type Arguments = Record<string, unknown>
export type Parsed = { ask: 'help' } | { args: Arguments } | { problem: string }

/** Ours, whatever a tool calls its arguments: those are given in `--json` then. */
const ours = ['json', 'help'] as const

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {}
const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : []

export function flagsOf(schema: ObjectSchema): readonly Flag[] {
  const required = textsIn(schema.required)
  return Object.entries(fieldsOf(schema.properties)).flatMap(([name, given]) => {
    if (!/^[\w.-]{1,100}$/.test(name) || ours.some(own => own === name)) return []
    const property = fieldsOf(given)
    const isList =
      kindOf(property) === 'json' && property.type === 'array' && isPlain(fieldsOf(property.items))
    const of = isList ? fieldsOf(property.items) : property
    return [
      {
        name,
        kind: kindOf(of),
        isList,
        isRequired: required.includes(name),
        allowed: Array.isArray(of.enum) ? of.enum.map(String) : undefined,
        description: typeof property.description === 'string' ? property.description : '',
      },
    ]
  })
}

const isPlain = (schema: Record<string, unknown>) => kindOf(schema) === 'text' || kindOf(schema) === 'number'

function kindOf({ type, enum: allowed }: Record<string, unknown>): Flag['kind'] {
  if (type === 'string') return 'text'
  if (type === 'number' || type === 'integer') return 'number'
  if (type === 'boolean') return 'boolean'
  return type === undefined && textsIn(allowed).length > 0 ? 'text' : 'json'
}

/** `--task-id` is `--task_id`, too. */
const spelled = (name: string) => name.replaceAll('_', '-')

/** What the words of a command line mean for a tool. `read`: all of standard input, for whatever is given as `-`. */
export async function parseFlags(
  flags: readonly Flag[],
  words: readonly string[],
  read: () => Promise<string>,
): Promise<Parsed> {
  const names = new Map(flags.flatMap(flag => [flag.name, spelled(flag.name)].map(name => [name, flag])))
  let values: Record<string, unknown>
  try {
    const options = Object.fromEntries(
      [...names].map(([name, { kind }]) => [
        name,
        { type: kind === 'boolean' ? ('boolean' as const) : ('string' as const), multiple: true },
      ]),
    )
    values = parseArgs({
      args: words.map(word => withoutValue(word, names)),
      options: { ...options, json: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
      allowNegative: true,
      strict: true,
      allowPositionals: false,
    }).values
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const needsValue = 'code' in error && error.code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE'
    const why = error.message.split(/[.\n]/)[0] ?? error.message
    return {
      problem: needsValue ? `${why}; a value that begins with "-" is given as --NAME=VALUE` : why,
    }
  }
  if (values.help === true) return { ask: 'help' }
  const args: Arguments = {}
  try {
    if (typeof values.json === 'string') {
      const given: unknown = JSON.parse(values.json === '-' ? await read() : values.json)
      if (typeof given !== 'object' || given === null || Array.isArray(given))
        return { problem: '--json takes a JSON object' }
      Object.assign(args, given)
    }
    for (const flag of flags) {
      const given = [flag.name, spelled(flag.name)]
        .filter((name, i, all) => all.indexOf(name) === i)
        .flatMap(name => {
          const value = values[name]
          return Array.isArray(value) ? value : []
        })
      if (given.length === 0) continue
      if (!flag.isList && given.length > 1)
        return { problem: `--${spelled(flag.name)} is given more than once` }
      const made: unknown[] = []
      for (const value of given)
        made.push(typeof value === 'string' ? valueIn(flag, value === '-' ? await read() : value) : value)
      args[flag.name] = flag.isList ? made : made[0]
    }
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: `not valid JSON: ${error.message}` }
    if (error instanceof RangeError) return { problem: error.message }
    throw error
  }
  const missing = flags.filter(({ name, isRequired }) => isRequired && !Object.hasOwn(args, name))
  if (missing.length > 0)
    return { problem: `${missing.map(({ name }) => `--${spelled(name)}`).join(', ')} must be given` }
  return { args }
}

/** `--all=true` and `--all=false` as other programs take them. */
function withoutValue(word: string, names: ReadonlyMap<string, Flag>): string {
  const [, name = '', value] = /^--([\w.-]+)=(true|false)$/.exec(word) ?? []
  if (names.get(name)?.kind !== 'boolean') return word
  return value === 'true' ? `--${name}` : `--no-${name}`
}

function valueIn({ name, kind }: Flag, text: string): unknown {
  if (kind === 'text') return text
  if (kind === 'json') return JSON.parse(text)
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number))
    throw new RangeError(`--${spelled(name)} takes a number, not ${JSON.stringify(text.slice(0, 100))}`)
  return number
}

/** A line or two for each flag. */
export const helpOf = (flags: readonly Flag[]): string =>
  flags
    .map(({ name, kind, isList, isRequired, allowed, description }) => {
      const value = kind === 'boolean' ? '' : ` ${allowed?.join('|') ?? kind.toUpperCase()}`
      const notes = [isRequired ? 'required' : '', isList ? 'may be given again' : ''].filter(Boolean)
      const head = `  --${spelled(name)}${value}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`
      return description === '' ? head : `${head}\n      ${description}`
    })
    .join('\n')
