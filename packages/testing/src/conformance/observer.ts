import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'

/**
 * What is seen from outside of one installation: its directories, what the program in the container has noted in the group's
 * folder, and, once the daemon has ended, its database. Nothing is asked of the daemon.
 */
const line = z.looseObject({
  feature: z.string().optional(),
  ok: z.boolean().optional(),
  seen: z.string().optional(),
  did: z.string().optional(),
  begins: z.string().optional(),
  broken: z.string().optional(),
  run: z.string().optional(),
})
export type Line = z.infer<typeof line>

const refusalSchema = z.object({
  original_file: z.string(),
  error: z.string(),
  processed_at: z.iso.datetime(),
  source_group: z.string(),
  code: z.string(),
  type: z.string().nullable(),
})
export type Refused = z.infer<typeof refusalSchema> & { name: string }

type Value = string | number | null
export type Found = Record<string, Value>

const found = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])))
const patienceMs = 120_000

export function openObserver(data: string) {
  const evidence = (folder: string): Line[] => {
    const text = readText(join(data, 'groups', folder, 'evidence.jsonl'))
    // Its last line may be half written.
    return text
      .split('\n')
      .slice(0, -1)
      .map(written => line.parse(JSON.parse(written)))
  }
  const rows = (query: string, ...values: Value[]): Found[] => {
    const database = new DatabaseSync(join(data, 'state', 'hatchway.db'), { readOnly: true, timeout: 10_000 })
    try {
      return found.parse(database.prepare(query).all(...values))
    } finally {
      database.close()
    }
  }
  const until = async <T>(
    what: string,
    look: () => Promise<T | undefined | false> | T | undefined | false,
  ): Promise<T> => {
    const deadline = performance.now() + patienceMs
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen
      if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`)
      await sleep(100)
    }
  }
  const box = (folder: string, name: string) => join(data, 'ipc', folder, name)
  return {
    data,
    rows,
    until,
    evidence,
    /** the runs that have done it, in order; a run is named by the session that it gives */
    runsThatDid: (folder: string, order: string): string[] => {
      let run = ''
      const runs: string[] = []
      for (const { run: begun, did } of evidence(folder)) {
        if (begun !== undefined) run = begun
        if (did === order) runs.push(run)
      }
      return runs
    },
    message: (text: string) => rows('SELECT * FROM messages WHERE text = ?', text)[0],
    messages: (folder: string) =>
      rows('SELECT * FROM messages WHERE group_folder = ? ORDER BY id', folder).map(({ text }) =>
        String(text),
      ),
    task: (prompt: string) => rows('SELECT * FROM tasks WHERE prompt = ? ORDER BY created_at', prompt)[0],
    group: (folder: string) => rows('SELECT * FROM groups WHERE folder = ?', folder)[0],
    runs: (folder: string) => rows('SELECT * FROM runs WHERE group_folder = ? ORDER BY seq', folder),
    journal: (folder: string) => rows('SELECT * FROM commands WHERE group_folder = ? ORDER BY seq', folder),
    names: (folder: string, name: string): string[] => namesIn(box(folder, name)),
    has: (folder: string, path: string) =>
      statSync(box(folder, path), { throwIfNoEntry: false }) !== undefined,
    refused: (): Refused[] =>
      namesIn(join(data, 'ipc', 'errors'))
        .filter(name => name.endsWith('.error.json'))
        .map(name => ({
          name,
          ...refusalSchema.parse(JSON.parse(readFileSync(join(data, 'ipc', 'errors', name), 'utf8'))),
        })),
    /** of `errors/`, whatever it is */
    errorNames: () => namesIn(join(data, 'ipc', 'errors')),
  }
}

const namesIn = (path: string): string[] => {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
