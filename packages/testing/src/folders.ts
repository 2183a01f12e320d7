import { existsSync, mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const temporaryFolder = (name: string): string => mkdtempSync(join(tmpdir(), `hatchway-${name}-`))

/**
 * For many thousands of files: in memory, where there is room. What is proved with them is not the disk, and an ext4
 * without a journal takes a hundred times as long for a new file while it remembers those just removed.
 */
export function roomyFolder(name: string): string {
  const inMemory = '/dev/shm'
  if (!existsSync(inMemory)) return temporaryFolder(name)
  const { bavail, bsize } = statfsSync(inMemory)
  return bavail * bsize < 4 * 2 ** 30
    ? temporaryFolder(name)
    : mkdtempSync(join(inMemory, `hatchway-${name}-`))
}
