import { z } from 'zod'
import { configSchema } from './schema.ts'

export interface Setting {
  /** as in the file: `limits.fileBytes` */
  name: string
  path: readonly string[]
  /** the variable that overrides the file: `HATCHWAY_LIMITS_FILE_BYTES`; empty: it is no text, and only a file has it */
  env: string
  description: string
  /** continues "it must be" */
  allowed: string
  wholeNumber: boolean
  /** for people to read: the value, or where it comes from */
  default: string
}

const node = z.looseObject({
  type: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  description: z.string().optional(),
  allowed: z.string().optional(),
  otherwise: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  default: z.unknown().optional(),
})

/** Also of what cannot be given so: whoever tries is told, and not passed over. */
export const variableOf = (path: readonly string[]) =>
  `HATCHWAY_${path.map(part => part.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()).join('_')}`

const range = (minimum: number, maximum: number) =>
  maximum === Number.MAX_SAFE_INTEGER
    ? `a whole number, ${minimum} or more`
    : `a whole number from ${minimum} to ${maximum}`

export function leavesOf(schema: unknown, path: readonly string[]): Setting[] {
  const found = node.parse(schema)
  if (found.properties) {
    return Object.entries(found.properties).flatMap(([key, value]) => leavesOf(value, [...path, key]))
  }
  return [
    {
      name: path.join('.'),
      path,
      env: found.type === 'array' || found.type === 'object' ? '' : variableOf(path),
      description: found.description ?? '',
      allowed:
        found.allowed ??
        (found.enum
          ? `one of ${found.enum.join(', ')}`
          : range(found.minimum ?? 0, found.maximum ?? Number.MAX_SAFE_INTEGER)),
      wholeNumber: found.type === 'integer',
      default: found.otherwise ?? String(found.default),
    },
  ]
}

/** What is not a whole number stays text, and is refused by the schema: `1e3`, ` 5` and `0x10` are not guessed at. */
export const textValue = (setting: Pick<Setting, 'wholeNumber'>, text: string): string | number =>
  setting.wholeNumber && /^-?\d{1,16}$/.test(text) ? Number(text) : text

let known: readonly Setting[] | undefined

/** Every value of the schema, in its order. */
export function settings(): readonly Setting[] {
  known ??= described(configSchema, [])
  return known
}

const described = (schema: z.core.$ZodType, path: readonly string[]): Setting[] =>
  leavesOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), path)

/**
 * Those that these variables set. An empty variable is an unset one: that is how compose files and unit files switch one
 * off. Every start asks, so only what is found is described.
 */
export const settingsIn = (env: NodeJS.ProcessEnv): Setting[] =>
  placesIn(configSchema, [])
    .filter(({ path }) => (env[variableOf(path)] ?? '') !== '')
    .flatMap(({ schema, path }) => described(schema, path))

function placesIn(
  schema: z.core.$ZodType,
  path: readonly string[],
): { schema: z.core.$ZodType; path: readonly string[] }[] {
  let inner = schema
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodOptional)
    inner = inner.unwrap()
  if (!(inner instanceof z.ZodObject)) return [{ schema, path }]
  return Object.entries(inner.shape).flatMap(([key, value]) => placesIn(value, [...path, key]))
}
