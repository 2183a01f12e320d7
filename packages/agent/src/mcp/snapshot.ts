import { join } from 'node:path'
import type { z } from 'zod'
import { jsonIn, readHostFile } from './read-file.ts'

export type Snapshot<T> = { value: T } | { problem: string; missing: boolean }

/** What the host shows of its state. A file that is not there is not an empty list, and is not told as one. */
export function readSnapshot<S extends z.ZodType>(
  ipc: string,
  name: string,
  schema: S,
  limit?: number,
): Snapshot<z.infer<S>> {
  const file = readHostFile(join(ipc, name), limit)
  if ('missing' in file)
    return { problem: `${name} is not there: the host has not written it yet`, missing: true }
  const noUse = (why: string) => ({ problem: `${name} is of no use: ${why}`, missing: false })
  if ('problem' in file) return noUse(file.problem)
  const parsed = schema.safeParse(jsonIn(file.text))
  return parsed.success ? { value: parsed.data } : noUse('it has another shape than this agent understands')
}
