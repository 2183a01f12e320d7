import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { z } from 'zod'
import { isoOf } from './entities/instant.ts'

export type Row = Record<string, SQLOutputValue>

/** Between the rows of one table and an entity. All of it follows from the schema: a new field needs a column, and nothing here. */
export interface Table<T> {
  /** of all fields, in the schema's order */
  columns: string
  /** a question mark for each of them */
  places: string
  /** with a place for each of `values` */
  insert: string
  /** `insert`, in place of a row that has the same key */
  replace: string
  /** without an id the table counts */
  values(entity: Omit<T, 'id'>): SQLInputValue[]
  from(row: Row): T
  /** for what may not be there */
  maybe(row: Row | undefined): T | undefined
  /** the columns of a change, in `SET` form; text is empty where nothing changes */
  set(change: Partial<T>): { text: string; values: SQLInputValue[] }
}

/** JSON of a column that is read by itself. */
export const parsed = (json: SQLOutputValue | undefined): unknown =>
  typeof json === 'string' ? JSON.parse(json) : null

/**
 * How one field is kept. Rows are our own, so they are converted and not checked. JSON is checked, as it may be of an
 * earlier version.
 */
interface Column {
  key: string
  name: string
  isOptional: boolean
  read(value: Exclude<SQLOutputValue, null>): unknown
  /** left out: texts and numbers are kept as they are, and what is true or false as 1 or 0 */
  write?: (value: unknown) => SQLInputValue
}

/** Columns are named as their fields are, except where `names` says otherwise. */
export function tableOf<S extends z.ZodRawShape>(
  table: string,
  schema: z.ZodObject<S>,
  names: { readonly [K in keyof S]?: string } = {},
): Table<z.output<z.ZodObject<S>>> {
  type Entity = z.output<z.ZodObject<S>>
  const columns: readonly Column[] = Object.entries(schema.shape).map(([key, field]) => ({
    key,
    name: names[key] ?? (key === 'group' ? 'group_folder' : snakeCase(key)),
    isOptional: field instanceof z.ZodOptional,
    ...conversionOf(field),
  }))
  const list = columns.map(({ name }) => name).join(', ')
  const places = columns.map(() => '?').join(', ')
  const into = `INTO ${table} (${list}) VALUES (${places})`

  const from = (row: Row): Entity => {
    const entity: Record<string, unknown> = {}
    for (const { key, name, isOptional, read } of columns) {
      const value = row[name]
      if (value !== null && value !== undefined) entity[key] = read(value)
      else if (!isOptional) entity[key] = null
    }
    // The one place where a row becomes an entity: each field was read as its schema says.
    return entity as Entity
  }
  return {
    columns: list,
    places,
    insert: `INSERT ${into}`,
    replace: `INSERT OR REPLACE ${into}`,
    values(entity: Fields) {
      const values: SQLInputValue[] = []
      for (const column of columns) values.push(cellOf(column, entity))
      return values
    },
    from,
    maybe: row => row && from(row),
    set(change: Fields) {
      const changed = columns.filter(({ key }) => change[key] !== undefined)
      return {
        text: changed.map(({ name }) => `${name} = ?`).join(', '),
        values: changed.map(column => cellOf(column, change)),
      }
    },
  }
}

type Fields = Readonly<Record<string, unknown>>

function cellOf({ key, write }: Column, entity: Fields): SQLInputValue {
  const value = entity[key]
  if (value === null || value === undefined) return null
  if (write) return write(value)
  return typeof value === 'string' || typeof value === 'number' ? value : Number(value)
}

const snakeCase = (key: string) => key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

function conversionOf(field: z.core.$ZodType): Pick<Column, 'read' | 'write'> {
  let inner = field
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable) inner = inner.def.innerType
  // Wire entities have their moments as text; like all others they are kept as numbers, to be compared.
  if (inner instanceof z.ZodISODateTime)
    return { read: value => isoOf(Number(value)), write: value => Date.parse(String(value)) }
  if (inner instanceof z.ZodString || inner instanceof z.ZodEnum) return { read: String }
  // A codec is a moment, which is a number here.
  if (inner instanceof z.ZodNumber || inner instanceof z.ZodCodec) return { read: Number }
  if (inner instanceof z.ZodBoolean) return { read: value => Number(value) === 1 }
  return {
    read: value => z.parse(field, JSON.parse(String(value))),
    write: value => JSON.stringify(value),
  }
}
