import { z } from 'zod'
import type { ToolDefinition } from '../apis/types.ts'
import { tokensIn, tokensOfTools } from '../window.ts'
import { type AssistantTool, ownTool, refused, said } from './types.ts'

/**
 * Which tools the model is shown, and how. With room for all of it, each as it is. Otherwise each with a short
 * description and a schema without words, as long as that fits; the rest by name in a list, called through `call_tool`.
 * `tool_help` tells everything about one.
 */
export interface Offer {
  definitions: readonly ToolDefinition[]
  /** by every name that the model may use, listed or not */
  tools: ReadonlyMap<string, AssistantTool>
  /** to be added to what the model is told */
  list: string
}

/** What all four APIs take as a name. */
const longestName = 64
const named = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, longestName)

export function offerOf(
  own: readonly AssistantTool[],
  others: readonly AssistantTool[],
  room: number,
): Offer {
  const tools = new Map<string, AssistantTool>()
  for (const tool of [...own, ...others]) {
    const name = tools.has(named(tool.name)) ? named(`service_${tool.name}`) : named(tool.name)
    if (!tools.has(name)) tools.set(name, tool)
  }
  const whole = [...tools].map(([name, { description, schema }]) => ({ name, description, schema }))
  if (tokensOfTools(whole) <= room) return { definitions: whole, tools, list: '' }

  const help = helpTool(tools)
  const short = [...tools].map(([name, { description, schema }]) => ({
    name,
    description: firstSentence(description, 120),
    schema: withoutWords(schema),
  }))
  if (tokensOfTools([...short, help]) <= room)
    return { definitions: [...short, help], tools: new Map([...tools, [help.name, help]]), list: '' }

  const call = callTool(tools)
  const extra = [help, call].map(({ name, description, schema }) => ({ name, description, schema }))
  const { shown, listed } = divide(short, room - tokensOfTools(extra))
  return {
    definitions: [...shown, ...extra],
    tools: new Map([...tools, [help.name, help], [call.name, call]]),
    list: listOf(listed, room - tokensOfTools([...shown, ...extra])),
  }
}

const perListed = 30

/** As many as leave room for the names of the rest. */
function divide(tools: readonly ToolDefinition[], room: number) {
  const shown: ToolDefinition[] = []
  for (const tool of tools) {
    const left = tools.length - shown.length - 1
    if (tokensOfTools([...shown, tool]) + Math.min(left * perListed, room / 3) > room) break
    shown.push(tool)
  }
  return { shown, listed: tools.slice(shown.length) }
}

/** With as many words about each as there is room for. */
function listOf(tools: readonly ToolDefinition[], room: number): string {
  const opening = 'More tools, which you call with call_tool:'
  for (const longest of [90, 60, 30]) {
    const lines = tools.map(({ name, description }) => `- ${name}: ${firstSentence(description, longest)}`)
    const text = [opening, ...lines].join('\n')
    if (tokensIn(text) <= room) return text
  }
  const names = `${opening} ${tools.map(({ name }) => name).join(', ')}`
  return tokensIn(names) <= room
    ? names
    : `There are ${tools.length} more tools. tool_help without a name lists them; call_tool calls them.`
}

const helpTool = (tools: ReadonlyMap<string, AssistantTool>): AssistantTool =>
  ownTool({
    name: 'tool_help',
    description:
      'Tells everything about one of your tools and its arguments; without a name, lists all tools.',
    input: z.strictObject({ name: z.string().optional() }),
    call({ name }) {
      if (name === undefined)
        return said(
          [...tools].map(([one, { description }]) => `${one}: ${firstSentence(description, 90)}`).join('\n'),
        )
      const tool = tools.get(named(name))
      return tool
        ? said(`${tool.description}\nArguments: ${JSON.stringify(tool.schema)}`)
        : unknownTool(name, tools.keys())
    },
  })

const callTool = (tools: ReadonlyMap<string, AssistantTool>): AssistantTool =>
  ownTool({
    name: 'call_tool',
    description: 'Calls a tool of the list by its name.',
    input: z.strictObject({
      name: z.string(),
      arguments: z.union([z.record(z.string(), z.unknown()), z.string()]).optional(),
    }),
    async call({ name, arguments: given = {} }, signal) {
      const tool = tools.get(named(name))
      if (!tool) return unknownTool(name, tools.keys())
      const args = typeof given === 'string' ? argumentsIn(given) : given
      return args ? tool.call(args, signal) : refused('`arguments` has to be an object.')
    },
  })

export const unknownTool = (name: string, known: Iterable<string>) =>
  refused(
    `There is no tool ${JSON.stringify(name.slice(0, 100))}. There are: ${[...known].join(', ').slice(0, 2000)}.`,
  )

/** What a model wrote as arguments; undefined: that is no object, not even when it is read once more. */
export function argumentsIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text || '{}')
    if (typeof value === 'string') return argumentsIn(value)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function firstSentence(text: string, longest: number): string {
  const sentence = /^[\s\S]*?\.(?=\s|$)/.exec(text)?.[0] ?? text
  return sentence.length > longest ? `${sentence.slice(0, longest - 1).toWellFormed()}…` : sentence
}

const wordy = new Set([
  'description',
  'title',
  'examples',
  'default',
  'pattern',
  '$schema',
  '$comment',
  'format',
  'additionalProperties',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
])
const longestHint = 60

/** The shape of it. What a required text is about is kept in a few words, as that is where models go wrong. */
function withoutWords(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = Array.isArray(schema.required) ? schema.required : []
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (wordy.has(key)) return []
    if (key !== 'properties' || !isObject(value)) return [[key, shape(value)]]
    const properties = Object.entries(value).map(([name, property]) => {
      const short = shape(property)
      const hint = isObject(property) && typeof property.description === 'string' ? property.description : ''
      return [
        name,
        isObject(short) && required.includes(name) && hint !== ''
          ? { ...short, description: firstSentence(hint, longestHint) }
          : short,
      ]
    })
    return [[key, Object.fromEntries(properties)]]
  })
  return Object.fromEntries(entries)
}

const shape = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(shape) : isObject(value) ? withoutWords(value) : value

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
