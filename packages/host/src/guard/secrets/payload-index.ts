import { isSecretField } from './forms.ts'
import { viewsOf } from './views.ts'

/**
 * A payload laid out as one text, so that it is searched once and not string by string: a line for each value with its
 * name before it, for what is wrapped in it, and for what its neighbours make when they are put together.
 */
export interface PayloadIndex {
  text: string
  /** which value the character there comes from */
  valueAt(index: number): number
  /** what is called a secret, as indexes of values */
  named: readonly number[]
  /** where a value is; `hideKey` where its own name must not be shown */
  placeOf(value: number, hideKey: boolean): string
  keyOf(value: number): string
}

/** What is more than that is not searched, and counts as if something had been found. */
const limits = { characters: 8_388_608, values: 200_000, depth: 100 }

export class TooMuch extends Error {}

interface Step {
  parent: Step | undefined
  key: string | number
  /** inside a text that is JSON itself */
  isWrapped: boolean
}

/** Ends of neighbours that may be two halves of one thing. */
const endLength = 256

export function indexPayload(payload: unknown, { neighbours = true } = {}): PayloadIndex {
  const pieces: string[] = []
  const starts: number[] = []
  const owners: number[] = []
  const steps: Step[] = []
  const named: number[] = []
  const texts: { text: string; value: number }[] = []
  let length = 0

  const write = (text: string, value: number) => {
    if (text === '') return
    starts.push(length)
    owners.push(value)
    pieces.push(text)
    length += text.length
    if (length > limits.characters) throw new TooMuch()
  }
  const writeLine = (text: string, value: number) => {
    write(text, value)
    write('\n', value)
  }

  const walk = (content: unknown, step: Step, depth: number): void => {
    const value = steps.push(step) - 1
    if (value > limits.values || depth > limits.depth) throw new TooMuch()
    const name = typeof step.key === 'string' ? step.key : ''
    if (typeof content === 'string' || typeof content === 'number') {
      writeValue(name, String(content), step, value, depth)
      return
    }
    if (name !== '') writeLine(name, value)
    if (typeof content !== 'object' || content === null) return
    if (Array.isArray(content)) {
      for (const [key, item] of content.entries())
        walk(item, { parent: step, key, isWrapped: false }, depth + 1)
      return
    }
    const fields = Object.entries(content)
    for (const [key, item] of fields) walk(item, { parent: step, key, isWrapped: false }, depth + 1)
    writePair(new Map(fields), value)
  }

  const writeValue = (name: string, text: string, step: Step, value: number, depth: number) => {
    writeLine(name === '' ? text : `${name}: ${text}`, value)
    if (isSecretField(name, text)) named.push(value)
    texts.push({ text, value })
    for (const view of viewsOf(text)) writeLine(view, value)
    for (const view of name.length > 20 ? viewsOf(name) : []) writeLine(view, value)
    const wrapped = jsonIn(text)
    if (wrapped !== undefined) walk(wrapped, { ...step, isWrapped: true }, depth + 1)
  }

  /** `{ name: 'password', value: '…' }`, as headers and variables are often given. */
  const writePair = (fields: ReadonlyMap<string, unknown>, value: number) => {
    const { name, content } = pairIn(fields)
    if (name === undefined || content === undefined) return
    writeLine(`${name}: ${content}`, value)
    if (isSecretField(name, content)) named.push(value)
  }

  /** Two halves of a secret in two places are still the secret; so are all of its pieces in a row. */
  const writeNeighbours = () => {
    for (const [index, { text, value }] of texts.entries()) {
      const next = texts[index + 1]
      if (!next) continue
      write(text.slice(-endLength), value)
      writeLine(next.text.slice(0, endLength), next.value)
    }
    if (texts.length < 3) return
    for (const { text, value } of texts) {
      if (text.length <= endLength) {
        write(text, value)
      } else {
        writeLine(text.slice(0, endLength), value)
        write(text.slice(-endLength), value)
      }
    }
  }

  walk(payload, { parent: undefined, key: 'payload', isWrapped: false }, 0)
  if (neighbours) writeNeighbours()

  return {
    text: pieces.join(''),
    valueAt(index) {
      let [low, high] = [0, starts.length - 1]
      while (low < high) {
        const middle = (low + high + 1) >> 1
        if ((starts[middle] ?? 0) <= index) low = middle
        else high = middle - 1
      }
      return owners[low] ?? 0
    },
    named,
    placeOf: (value, hideKey) => placeOf(steps[value], hideKey),
    keyOf: value => String(steps[value]?.key ?? ''),
  }
}

const pairIn = (fields: ReadonlyMap<string, unknown>) => {
  const textOf = (keys: readonly string[]) =>
    keys.map(key => fields.get(key)).find(field => typeof field === 'string')
  return {
    name: textOf(['name', 'key', 'header', 'variable', 'field']),
    content: textOf(['value', 'content']),
  }
}

function jsonIn(text: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Names can hold secrets too: what is not a plain word is shown by nothing but that it is there. */
const shownKey = (key: string | number): string => {
  if (typeof key === 'number') return `[${key}]`
  return /^[A-Za-z]{1,16}(?:[_-][A-Za-z]{1,16}){0,3}$/.test(key) ? `.${key}` : '.…'
}

const shownSteps = 8

function placeOf(last: Step | undefined, hideKey: boolean): string {
  const shown: string[] = []
  for (let step = last; step !== undefined; step = step.parent) {
    shown.unshift(
      (hideKey && step === last ? '.…' : shownKey(step.key)) + (step.isWrapped ? ' (JSON in it)' : ''),
    )
  }
  const kept = shown.length > shownSteps ? [...shown.slice(0, shownSteps), '…'] : shown
  return kept.join('').slice(1)
}
