import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Removes what an agent may have filled, also where it has locked a directory against us. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    await unlock(path)
    await rm(path, { recursive: true, force: true })
  }
}

async function unlock(path: string): Promise<void> {
  // A link is not gone through: only directories are.
  if (!(await lstat(path)).isDirectory()) return
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await unlock(join(path, entry.name))
  }
}
