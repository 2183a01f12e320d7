import {
  closeSync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type Attack, codeOf, drops, places } from './attack.ts'

/** Files that change their names, are removed, linked and written to in the instant in which they are claimed. */
export async function races(attack: Attack): Promise<void> {
  const { random, known, ledger } = attack
  const names: string[] = []
  const open: number[] = []
  let posted = 0
  const own = JSON.stringify({ type: 'message', chatJid: known.own.jid, text: 'raced' })
  const foreign = JSON.stringify({
    type: 'message',
    chatJid: known.others[0]?.jid,
    text: 'raced to another chat',
  })
  const succeeds = (work: () => void) => {
    try {
      work()
      return true
    } catch (error) {
      if (['ENOENT', 'EPERM', 'EACCES', 'EEXIST', 'EMLINK'].includes(codeOf(error))) return false
      throw error
    }
  }
  try {
    for (let n = 0; !attack.isOver(); n++) {
      const drop = join(places.ipc, random.pick(drops))
      const fresh = join(drop, attack.freshName())
      const half = join(drop, `.race-${n}`)
      const way = random.below(3)
      const isPosted = succeeds(() => {
        if (way === 0) {
          // Written in place, and never finished.
          const fd = openSync(fresh, 'wx+')
          open.push(fd)
          writeSync(fd, own.slice(0, random.below(own.length)))
          return
        }
        writeFileSync(half, own)
        // Still open for writing after it was posted: what is read must be what is decided.
        if (way === 1) open.push(openSync(half, 'r+'))
        renameSync(half, fresh)
      })
      // Another attack was in the way.
      if (!isPosted) continue
      names.push(fresh)
      posted++
      const path = random.pick(names)
      const other = join(dirname(path), attack.freshName())
      switch (random.below(8)) {
        case 0:
          if (succeeds(() => unlinkSync(path))) posted--
          break
        case 1:
          if (succeeds(() => renameSync(path, other))) names.push(other)
          break
        case 2:
          if (!succeeds(() => renameSync(path, `${other}.tmp`))) break
          if (!succeeds(() => renameSync(`${other}.tmp`, path))) posted--
          break
        case 3:
          if (!succeeds(() => linkSync(path, other))) break
          posted++
          if (random.chance(0.5) && succeeds(() => unlinkSync(other))) posted--
          break
        case 4:
          // A link in its place.
          if (!succeeds(() => unlinkSync(path))) break
          posted--
          if (succeeds(() => symlinkSync(random.pick(known.paths), path))) posted++
          break
        default: {
          const fd = open[random.below(open.length)]
          if (fd === undefined) break
          if (random.chance(0.3)) ftruncateSync(fd, random.below(2_000_000))
          writeSync(fd, random.chance(0.5) ? foreign : own, 0)
          if (random.chance(0.5)) ftruncateSync(fd, own.length)
        }
      }
      if (open.length > 30) closeSync(open.splice(random.below(open.length), 1)[0] ?? -1)
      if (names.length > 64) names.splice(0, 32)
      if (n % 100 === 99) {
        ledger.write({ kind: 'count', posted })
        posted = 0
        await attack.breathe()
      }
    }
  } finally {
    // Also where it stumbles over another attack: what was made was made.
    if (posted !== 0) ledger.write({ kind: 'count', posted })
  }
  for (const fd of open) closeSync(fd)
}
