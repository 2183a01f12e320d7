import { appendFileSync } from 'node:fs'

/**
 * What the program in the container has seen, for whoever looks into the group's folder from outside. It does not go
 * through the hatch, so that a fault there cannot hide itself.
 */
const file = '/workspace/group/evidence.jsonl'

export const note = (line: object): void => appendFileSync(file, `${JSON.stringify(line)}\n`)

const said = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value))?.slice(0, 500)

export const saw = (feature: string, ok: boolean, seen: unknown): void =>
  note({ feature, ok, seen: said(seen) })

/** The feature holds unless something throws. */
export async function check(feature: string, look: () => unknown): Promise<void> {
  try {
    const seen = await look()
    saw(feature, true, seen ?? 'as it has to be')
  } catch (error) {
    saw(feature, false, error instanceof Error ? error.message : String(error))
  }
}

export function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise)
}

/** All of the keys that it must have, and none but those that it may. */
export function mustHave(value: unknown, keys: readonly string[], maybe: readonly string[] = []): void {
  must(typeof value === 'object' && value !== null, `not an object: ${said(value)}`)
  const has = Object.keys(value)
  const missing = keys.filter(key => !has.includes(key))
  const extra = has.filter(key => !keys.includes(key) && !maybe.includes(key))
  must(missing.length === 0, `without ${missing.join(', ')}: ${said(value)}`)
  must(extra.length === 0, `with ${extra.join(', ')}: ${said(value)}`)
}

/** What an order comes to that is not a fault: it ends the turn in another way than with an answer. */
export class TurnEnds extends Error {}

export type Row = Record<string, unknown>

export const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function rowsOf(value: unknown): Row[] {
  must(Array.isArray(value), `not a list: ${said(value)}`)
  return value.map(row => {
    must(isRow(row), `not an object: ${said(row)}`)
    return row
  })
}

export const isTime = (value: unknown): boolean =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value) &&
  !Number.isNaN(Date.parse(value))
