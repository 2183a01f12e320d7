import { z } from 'zod'
import { isoOf } from '../store/entities/instant.ts'

/**
 * An entity as the API shows it: names in snake_case, moments in ISO 8601. The schema that checks it, and what makes it
 * of a row, both follow from the entity's own schema.
 */
export interface Wire<S extends z.ZodRawShape> {
  schema: z.ZodObject<WireShape<S>>
  of(entity: z.output<z.ZodObject<S>>): z.output<z.ZodObject<WireShape<S>>>
}

type SnakeCase<K extends string> = K extends `${infer First}${infer Rest}`
  ? First extends Lowercase<First>
    ? `${First}${SnakeCase<Rest>}`
    : `_${Lowercase<First>}${SnakeCase<Rest>}`
  : K

type WireField<F extends z.core.$ZodType> =
  F extends z.ZodCodec<infer Text extends z.core.$ZodType>
    ? Text
    : F extends z.ZodNullable<infer Inner extends z.core.$ZodType>
      ? z.ZodNullable<WireField<Inner>>
      : F

type WireShape<S extends z.ZodRawShape> = { [K in keyof S & string as SnakeCase<K>]: WireField<S[K]> }

export function wire<S extends z.ZodRawShape>(entity: z.ZodObject<S>): Wire<S> {
  const fields = Object.entries(entity.shape).map(([key, field]) => ({
    key,
    name: key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
    field: wireField(field),
    isMoment: isMoment(field),
  }))
  const schema = z.object(Object.fromEntries(fields.map(({ name, field }) => [name, field])))
  const of = (given: Readonly<Record<string, unknown>>) => {
    const shown: Record<string, unknown> = {}
    for (const { key, name, isMoment } of fields) {
      const value = given[key]
      if (value !== undefined) shown[name] = isMoment && typeof value === 'number' ? isoOf(value) : value
    }
    return shown
  }
  // The types say what the names above do; TypeScript cannot see that they agree.
  return { schema, of } as unknown as Wire<S>
}

function wireField(field: z.core.$ZodType): z.core.$ZodType {
  if (field instanceof z.ZodNullable && isMoment(field)) return z.nullable(wireField(field.unwrap()))
  if (!(field instanceof z.ZodCodec)) return field
  const { description, def } = field
  return description !== undefined && def.in instanceof z.ZodType ? def.in.describe(description) : def.in
}

const isMoment = (field: z.core.$ZodType): boolean =>
  field instanceof z.ZodCodec || (field instanceof z.ZodNullable && isMoment(field.unwrap()))
