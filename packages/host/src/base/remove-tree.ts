import { lstatSync, rmdirSync, unlinkSync } from 'node:fs'
import { empty } from '../runs/input-box.ts'

/**
 * Removes what an agent may have filled, also where it has locked a directory against us. Whoever filled it may still be
 * at it, in a container that is not ours to end: a directory that becomes a link meanwhile is not gone through. Only its
 * parent has to be ours alone.
 */
export async function removeTree(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isDirectory()) return unlinkSync(path)
  await empty(path)
  rmdirSync(path)
}
