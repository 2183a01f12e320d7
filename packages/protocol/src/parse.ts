import { isCutShort } from './cut-short.ts'
import { type Refusal, refusal } from './errors.ts'

/** `incomplete`: it may be the beginning of a document whose writer is not done yet (promise 1) */
export type Undecodable = { refusal: Refusal; incomplete: boolean }
export type Parsed = { body: Record<string, unknown> } | Undecodable

const quote = 0x22
const colon = 0x3a
const backslash = 0x5c
/** characters; so short a text is searched only to word the refusal well */
const searchedAnyway = 65_536

const refuse = (code: Refusal['code'], message: string, incomplete = false): Parsed => ({
  refusal: refusal(code, message),
  incomplete,
})

const isObject = (value: unknown): value is Record<string, unknown> | unknown[] =>
  typeof value === 'object' && value !== null

/**
 * Counts the keys of a parsed document, or answers -1 if a string in it has half a surrogate pair. A key named
 * `__proto__` counts and is then taken out: no schema names it, and a careless copy would make it a prototype.
 */
const countKeys = (root: Record<string, unknown>, checkStrings: boolean): number => {
  let keys = 0
  const open: (Record<string, unknown> | unknown[])[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) {
      for (const value of node) {
        if (isObject(value)) open.push(value)
        else if (checkStrings && typeof value === 'string' && !value.isWellFormed()) return -1
      }
      continue
    }
    for (const key in node) {
      keys++
      const value = node[key]
      if (isObject(value)) open.push(value)
      else if (checkStrings && typeof value === 'string' && !value.isWellFormed()) return -1
      if (checkStrings && !key.isWellFormed()) return -1
      if (key === '__proto__') delete node[key]
    }
  }
  return keys
}

/**
 * One JSON object, nested no deeper than allowed, naming each key once. Depth is measured before anything is built,
 * so a million brackets cost one look at each of the first few. JSON has exactly one colon outside strings for every
 * key, so fewer keys than colons in the result means that a key came twice. Messages never quote the file.
 *
 * Where its writer's time is over (`mayGrow` is false), a long text is not searched for whether it is only incomplete.
 */
export const parseStrict = (text: string, limits: { depth: number; mayGrow?: boolean }): Parsed => {
  const length = text.length
  let colons = 0
  let depth = 0
  let halfPairs = false
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      for (at++; at < length; at++) {
        const inside = text.charCodeAt(at)
        if (inside === quote) break
        if (inside === backslash) {
          at++
          // \ud800 to \udfff: the only way to write half a pair in valid UTF-8
          if (text.charCodeAt(at) === 0x75 && (text.charCodeAt(at + 1) | 0x20) === 0x64) halfPairs = true
        }
      }
    } else if (code === colon) colons++
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > limits.depth)
        return refuse('too_deep', `the JSON is nested deeper than ${limits.depth} levels`)
    } else if (code === 0x7d || code === 0x5d) depth--
  }

  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // the parser's own message quotes the file, so it goes no further
    if (text.trim() === '') return refuse('invalid_json', 'the file is empty', true)
    if ((limits.mayGrow !== false || text.length < searchedAnyway) && isCutShort(text))
      return refuse('invalid_json', 'the file ends before its JSON does', true)
    return refuse('invalid_json', 'the file is not valid JSON')
  }
  if (!isObject(body) || Array.isArray(body))
    return refuse('invalid_json', 'the file must hold one JSON object')

  const keys = countKeys(body, halfPairs)
  if (keys === -1) return refuse('invalid_utf8', 'a string in the file has half a surrogate pair')
  if (keys !== colons) return refuse('duplicate_key', 'an object in the file names the same key twice')
  return { body }
}
