import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRow, must, type Row } from './evidence.ts'

/** How containers of all projects handle files, each in its own words and at its own pace. */

/** Whole or not at all, under the project's own temporary name. */
export function write(directory: string, name: string, temporary: string, content: object): void {
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, temporary), JSON.stringify(content, null, 2))
  renameSync(join(directory, temporary), join(directory, name))
}

/** What is undefined is left out. */
export const present = (fields: Row): Row =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

export const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

export const readRow = (path: string): Row => {
  const value = readJson(path)
  must(isRow(value), `${path} is not an object`)
  return value
}

export const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

export const document = async (): Promise<Row> => {
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk
  const value: unknown = JSON.parse(text)
  must(isRow(value), 'the document is not an object')
  return value
}

export const namesIn = (box: string): string[] =>
  readdirSync(box)
    .filter(name => name.endsWith('.json'))
    .sort()

/** Reads and deletes what lies in the box, in the order of the names. */
export const drain = (box: string): Row[] => namesIn(box).map(name => take(join(box, name)))

export function take(path: string): Row {
  const content = readRow(path)
  unlinkSync(path)
  return content
}

/** Whether it was there; it is gone now. */
export function heeded(sentinel: string): boolean {
  try {
    unlinkSync(sentinel)
    return true
  } catch {
    return false
  }
}

/** As often and as long as the project's own code looks for an answer. */
export async function awaited(path: string, everyMs: number, forMs: number): Promise<Row> {
  const begun = Date.now()
  while (Date.now() - begun < forMs) {
    if (isThere(path)) return take(path)
    await sleep(everyMs)
  }
  throw new Error(`no answer within ${forMs / 1000} s: ${path}`)
}

export async function eventually<T>(what: string, look: () => T | undefined | false): Promise<T> {
  const begun = Date.now()
  for (;;) {
    const found = look()
    if (found !== undefined && found !== false) return found
    must(Date.now() - begun < 60_000, `never came: ${what}`)
    await sleep(50)
  }
}

/** What comes while the agent works is held for it, as the stream into a real one holds it. */
export function createStream(first: string) {
  const waiting = [first]
  let wake = () => {}
  let isOver = false
  return {
    push(text: string) {
      waiting.push(text)
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = waiting.shift()
        if (next !== undefined) yield next
        else if (isOver) return
        else
          await new Promise<void>(resolve => {
            wake = resolve
          })
      }
    },
  }
}

export const log = (text: string) => console.error(`[agent-runner] ${text}`)
