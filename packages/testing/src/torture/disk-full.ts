import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom } from '../random.ts'
import type { Finding } from '../report.ts'
import { hasProgram, isRoot } from './available.ts'
import { keepBusy } from './kills.ts'
import { inOneScene, openScene, type PartRun, untried } from './parts.ts'
import { answersRequests } from './probe.ts'
import { createRestartableDaemon } from './restartable-daemon.ts'

/** The write-ahead log alone is kept at 16 MB. */
const megabytes = 96

/** A small file system in the place of the data directory. */
function mountSmall(kind: 'tmpfs' | 'ext4', data: string): void {
  if (kind === 'tmpfs') {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'hatchway', data])
    return
  }
  const image = `${data}.img`
  closeSync(openSync(image, 'w'))
  truncateSync(image, megabytes * 1_048_576)
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', image])
  execFileSync('mount', ['-o', 'loop', image, data])
}

/** Takes all the room there is, but for so many bytes. */
function createFiller(data: string) {
  const path = join(data, 'filler')
  return {
    fill(leftBytes: number) {
      const { bavail, bsize } = statfsSync(data)
      const fd = openSync(path, 'a')
      const block = Buffer.alloc(65_536)
      try {
        for (let left = bavail * bsize - leftBytes; left > 0; ) {
          left -= writeSync(fd, block, 0, Math.min(block.length, left))
        }
      } catch (error) {
        // Somebody else has taken some of it meanwhile.
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      } finally {
        closeSync(fd)
      }
    },
    empty: () => rmSync(path, { force: true }),
  }
}

/** The disk fills up and is emptied, again and again, under a daemon that is not started anew for it. */
export async function tortureFullDisk(run: PartRun): Promise<Finding[]> {
  if (!isRoot || !hasProgram('mount')) return untried('disk-full', 'only root can mount a small disk')
  const kinds = hasProgram('mkfs.ext4') ? (['ext4', 'tmpfs'] as const) : (['tmpfs'] as const)
  const kind = createRandom(run.options.seed).pick(kinds)
  const scene = await openScene(run, {
    prepare: data => {
      mountSmall(kind, data)
      run.closing.add(() => void execFileSync('umount', ['--lazy', data]))
    },
  })
  const { testbed, traffic } = scene
  const filler = createFiller(testbed.data)
  const daemon = createRestartableDaemon(testbed)
  let gaveUp = 0
  const busy = async (seed: number, ms: number) => {
    const until = performance.now() + ms
    await keepBusy(traffic, { seed }, () => daemon.isGone() || performance.now() > until)
  }
  const findings = await inOneScene(
    'disk-full',
    run,
    scene,
    async (round, tally) => {
      const { fault, seed } = round
      if (fault.kind !== 'full') return
      if (fault.during === 'start') {
        await daemon.kill()
        filler.fill(fault.leftBytes)
        const started = daemon.start()
        // Either it does without, or it says what is missing.
        await Promise.race([started.ready, started.exited, sleep(10_000)]).catch(() => {})
        if (daemon.isGone()) {
          gaveUp++
          if (!/ENOSPC|no space|disk|full/i.test(daemon.output()))
            tally.saw(`a start on a full disk failed with: ${daemon.output()}`)
          filler.empty()
        }
      }
      await daemon.up()
      const pid = daemon.pid()
      await busy(seed, fault.roomMs)
      filler.fill(fault.leftBytes)
      await busy(seed + 1, fault.fullMs)
      if (daemon.isGone()) tally.saw(`the daemon ended on a full disk: ${daemon.output()}`)
      if (fault.during === 'kill') await daemon.kill()
      filler.empty()
      await traffic.settle()
      await daemon.up()
      if (fault.during !== 'kill' && daemon.pid() !== pid) tally.saw('it had to be started again')
      for (const kind of ['message', 'memory'] as const) {
        const problem = await answersRequests(scene, kind)
        if (problem !== undefined) tally.saw(`${kind}: ${problem} after there was room again`)
      }
    },
    { before: daemon.stop },
  )
  return [
    ...findings,
    {
      what: `disk-full: starts without room that gave up and said why (${kind})`,
      seen: String(gaveUp),
      bound: 'any number',
      ok: true,
    },
  ]
}
