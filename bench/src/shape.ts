/** What comes from another process is unknown until it has been looked at. */
export type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

const unexpected = (what: string, value: unknown): never => {
  throw new TypeError(`expected ${what}, got ${value === null ? 'null' : typeof value}`)
}

export const asFields = (value: unknown): Fields => (isFields(value) ? value : unexpected('an object', value))
export const asNumber = (value: unknown): number =>
  typeof value === 'number' ? value : unexpected('a number', value)
export const asBigint = (value: unknown): bigint =>
  typeof value === 'bigint' ? value : unexpected('a bigint', value)
export const asText = (value: unknown): string =>
  typeof value === 'string' ? value : unexpected('text', value)
export const asTexts = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(asText) : unexpected('a list', value)
export const asNumbers = (value: unknown): number[] =>
  Array.isArray(value) ? value.map(asNumber) : unexpected('a list', value)
