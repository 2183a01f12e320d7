import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/**
 * Who has the data directory, for people and for finding the socket. It says nothing about whether the directory is
 * held at all: a killed daemon leaves it behind. Only the lock decides that.
 */
const lockOwnerSchema = z.object({
  pid: z.int(),
  what: z.enum(['daemon', 'command']),
  since: z.iso.datetime(),
  hostname: z.string(),
  socket: z.string().optional(),
  /** where the console really is: the configured port may have been taken */
  webPort: z.int().optional(),
  /** what a browser opens; left out where only public routes are served */
  webUrl: z.string().optional(),
})
export type LockOwner = z.infer<typeof lockOwnerSchema>

export const stateDirectory = (dataDirectory: string) => join(dataDirectory, 'state')

export const lockOwnerFile = 'daemon.json'

export function readLockOwner(dataDirectory: string): LockOwner | undefined {
  let text: string
  try {
    text = readFileSync(join(stateDirectory(dataDirectory), lockOwnerFile), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  try {
    return lockOwnerSchema.safeParse(JSON.parse(text)).data
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
