import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Finding } from '../report.ts'
import { fakeTime } from './available.ts'
import { keepBusy } from './kills.ts'
import { inOneScene, openScene, type PartRun, untried } from './parts.ts'
import type { Jump } from './plan.ts'
import { answersRequests } from './probe.ts'
import { createRestartableDaemon } from './restartable-daemon.ts'

const day = 86_400_000
const busyMs = 2500

/** The clock of the daemon alone is set while it runs: by hours, forwards and backwards, and over a change to summer time. */
export async function tortureClock(run: PartRun): Promise<Finding[]> {
  const library = fakeTime()
  if (library === undefined) return untried('clock', 'faketime is not installed')
  let ahead = 0
  const scene = await openScene(run, {}, () => Date.now() + ahead * 1000)
  const { testbed, traffic } = scene
  const file = join(testbed.home, 'clock')
  const set = (seconds: number) => {
    ahead = seconds
    writeFileSync(file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`)
  }
  set(0)
  const how = {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Files have one time, whenever somebody looks.
      NO_FAKE_STAT: '1',
    },
  }
  const daemon = createRestartableDaemon(testbed, how)
  return inOneScene(
    'clock',
    run,
    scene,
    async (round, tally) => {
      const { fault } = round
      if (fault.kind !== 'jump') return
      await daemon.up()
      for (const [i, jump] of fault.to.entries()) {
        const until = performance.now() + busyMs
        await keepBusy(traffic, { seed: round.seed + i }, () => daemon.isGone() || performance.now() > until)
        set(secondsTo(jump))
        if (fault.isKilled && i === 0) {
          await daemon.kill()
          await daemon.up()
        }
        const problem = await answersRequests(scene)
        if (problem !== undefined) tally.saw(`${problem} after the clock was set to ${jump}`)
      }
      await traffic.settle()
      if (daemon.isGone()) tally.saw(`the daemon ended: ${daemon.output()}`)
    },
    {
      wasSet: true,
      how,
      before: async () => {
        // Back to the truth while it runs, so that it has to notice that, too.
        set(0)
        await sleep(busyMs)
        await daemon.stop()
      },
    },
  )
}

/** From now to a few seconds before it happens in Berlin, where the schedules are. */
function secondsTo(jump: Jump): number {
  if (typeof jump === 'number') return jump
  const month = jump === 'summer begins' ? 2 : 9
  const year = new Date().getUTCFullYear() + 1
  // The last Sunday of the month, at one o'clock UTC.
  const last = new Date(Date.UTC(year, month, 31, 1))
  const change = last.getTime() - last.getUTCDay() * day
  return Math.round((change - Date.now()) / 1000) - 4
}
