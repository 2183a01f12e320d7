import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * What a sync is about to do, written down before it does it: a host that is killed in the middle finds out, by asking
 * the operator's repository for the revision, whether it was done.
 */
const recordSchema = z.strictObject({
  folder: z.string(),
  repo: z.string(),
  policy: z.enum(['merge', 'branch']),
  revision: z.string(),
  base: z.string(),
  commits: z.int(),
  subjects: z.array(z.string()),
  /** everybody has been told */
  isTold: z.boolean(),
})
export type SyncRecord = z.infer<typeof recordSchema>

export interface Records {
  read(id: string): Promise<SyncRecord | undefined>
  write(id: string, record: SyncRecord): Promise<void>
  /** those that nobody can ask about any more */
  prune(now: number): Promise<void>
}

const keptMs = 7 * 86_400_000

export function openRecords(directory: string): Records {
  const pathOf = (id: string) => join(directory, `${id}.json`)
  return {
    async read(id) {
      try {
        return recordSchema.parse(JSON.parse(await readFile(pathOf(id), 'utf8')))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
        throw error
      }
    },
    async write(id, record) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const temporary = `${pathOf(id)}.new`
      const file = await open(temporary, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(record))
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, pathOf(id))
    },
    async prune(now) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      for (const name of await readdir(directory)) {
        const path = join(directory, name)
        if (now - (await stat(path)).mtimeMs > keptMs) await rm(path, { recursive: true, force: true })
      }
    },
  }
}
