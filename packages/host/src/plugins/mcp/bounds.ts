import { answeredTooLarge } from './failure.ts'

/**
 * A schema says of each item that is wrong what is wrong with it, which takes a hundred times the room of the item. An
 * answer of ten megabytes has room for millions of items, so they are counted before anything is checked.
 */
export const mostItems = 10_000

/** what no schema looks into, ours or the client library's */
const unchecked = new Set(['structuredContent', '_meta'])
/** checked item by item, or passed on as they are: only how many there are counts */
const lists = new Set(['tools', 'resources', 'resourceTemplates', 'prompts'])

/** In the place of an answer with too many items stands an error for the call it answers. */
export function boundAnswer(message: object): void {
  if (!('result' in message) || !('id' in message)) return
  const { id, result } = message
  if (typeof id !== 'number' && typeof id !== 'string') return
  if (typeof result !== 'object' || result === null || !hasTooMany(result)) return
  Reflect.deleteProperty(message, 'result')
  Object.assign(message, answeredTooLarge(id))
}

function hasTooMany(result: object): boolean {
  let count = 0
  const left: unknown[] = []
  for (const [key, value] of Object.entries(result)) {
    if (unchecked.has(key)) continue
    if (lists.has(key) && Array.isArray(value)) {
      if (value.length > mostItems) return true
    } else left.push(value)
  }
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Array.isArray(value)) {
      count += value.length
      if (count > mostItems) return true
      for (const item of value) left.push(item)
    } else for (const [key, inner] of Object.entries(value)) if (key !== '_meta') left.push(inner)
  }
  return false
}
