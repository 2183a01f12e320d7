import type { CommandType } from '../commands.ts'
import { type Refusal, refusal } from '../errors.ts'

type Body = Readonly<Record<string, unknown>>

/** How one field of a command is found in a foreign file. */
interface Field {
  /** the names containers write it under; the first that is there counts */
  names: readonly [string, ...string[]]
  /** makes of the value what the command expects */
  read?: (value: unknown) => unknown
  /** what stands for it when it is not there */
  absent?: unknown
  /** the command could do without, the dialect's own host cannot */
  required?: boolean
}

export interface Shape {
  command: CommandType
  fields: readonly (readonly [canonical: string, field: Field])[]
  /** an object in the file that may hold the fields instead */
  within?: string
  /** other directories than the command's usual ones */
  directories?: readonly string[]
  /** what no single field says */
  also?: (body: Body) => Record<string, unknown> | undefined
}

type Fields = Record<string, string | Field>

export const shape = (
  command: CommandType,
  fields: Fields,
  more: Omit<Shape, 'command' | 'fields'> = {},
): Shape => ({
  command,
  fields: Object.entries(fields).map(([canonical, field]) => [
    canonical,
    typeof field === 'string' ? { names: [field] } : field,
  ]),
  ...more,
})

export const isPlainObject = (value: unknown): value is Body =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The command's payload as the file has it, not yet checked. JSON's null is how several containers leave a field out. */
export const payloadOf = (
  { fields, within, also }: Shape,
  body: Body,
  prefix = '',
): { payload: Record<string, unknown> } | Refusal => {
  const inner = within === undefined ? undefined : body[within]
  if (inner != null && !isPlainObject(inner)) return refusal('invalid_field', `${within}: must be an object`)
  const payload: Record<string, unknown> = {}
  for (const [canonical, { names, read, absent, required }] of fields) {
    let value: unknown
    for (const name of names) {
      value = inner?.[name] ?? body[name]
      if (value != null) break
    }
    if (value == null) {
      if (required) return refusal('invalid_field', `${prefix}${names[0]}: is required`)
      value = absent
    } else if (read) value = read(value)
    if (value !== undefined) payload[canonical] = value
  }
  return { payload: also ? Object.assign(payload, also(body)) : payload }
}

/** The name under which the writer of the file knows a field of the command. */
export const writtenName =
  ({ fields, within }: Shape, body: Body, prefix = '') =>
  (path: readonly PropertyKey[]): string => {
    const [canonical, ...deeper] = path
    const names = fields.find(([name]) => name === canonical)?.[1].names ?? [String(canonical)]
    const inner = within === undefined ? undefined : body[within]
    const insideName = isPlainObject(inner) ? names.find(name => inner[name] != null) : undefined
    const name =
      insideName === undefined
        ? (names.find(written => body[written] != null) ?? names[0])
        : `${within}.${insideName}`
    return prefix + [name, ...deeper.map(String)].join('.')
  }

/** Task ids are text; a fork of NanoClaw counts its tasks and writes the number. */
export const idAsText = (value: unknown): unknown => (Number.isSafeInteger(value) ? String(value) : value)

/** Milliseconds are often written as a number. */
export const numberAsText = (value: unknown): unknown => (typeof value === 'number' ? String(value) : value)

export const emptyAsAbsent = (value: unknown): unknown => (value === '' ? undefined : value)

/** Fields with which a file says who it comes from. The directory says it; these are never read (promise 2). */
const claims = new Set(['groupFolder', 'isMain', 'isAdmin', 'isGod', 'createdBy', 'source_group'])

/**
 * The arguments of a request that has them at top level. Names that begin with an underscore are how hosts pass
 * flags to themselves, and no container may pass one.
 */
export const argumentsOf = (body: Body, ownNames: readonly string[]): Record<string, unknown> => {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    if (!name.startsWith('_') && !claims.has(name) && !ownNames.includes(name)) kept[name] = value
  }
  return kept
}
