import { mkdirSync, renameSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { check, must } from './evidence.ts'
import type { Kit } from './kit.ts'

const attempts = ({ ipc, ownRoot }: Kit): (() => void)[] => [
  () => writeFileSync(join(ipc, 'current_tasks.json'), '[]'),
  () => renameSync(join(ipc, 'tasks'), join(ipc, 'tasks-of-mine')),
  // One that writes into the root of its hatch has a root of its own.
  ...(ownRoot ? [] : [() => unlinkSync(join(ipc, 'current_tasks.json')), () => mkdirSync(join(ipc, 'made'))]),
]

/** What it finds in its place: what is its own, and what is not. */
export async function lookAround(kit: Kit): Promise<void> {
  const { ipc, boxes } = kit
  await check('folders', () => {
    for (const box of boxes) {
      const probe = join(ipc, box, '.probe')
      mkdirSync(probe)
      rmdirSync(probe)
    }
    const own = '/workspace/group/probe'
    writeFileSync(own, 'mine')
    unlinkSync(own)
    return boxes.join(' ')
  })
  await check('readonly', () => {
    for (const attempt of attempts(kit)) {
      let failed = false
      try {
        attempt()
      } catch {
        failed = true
      }
      must(failed, `${attempt} was possible`)
    }
  })
}
