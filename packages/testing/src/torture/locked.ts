import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Launched } from '../daemon/process.ts'
import type { Finding } from '../report.ts'
import { hasProgram } from './available.ts'
import { keepBusy } from './kills.ts'
import { inOneScene, openScene, type PartRun, type Tally, untried } from './parts.ts'
import type { Fault, Round } from './plan.ts'
import { answersRequests } from './probe.ts'
import { createRestartableDaemon } from './restartable-daemon.ts'

const program = join(import.meta.dirname, 'lock-owner.process.ts')

/** What the other process has said, and when it is over. */
async function hold(file: string, how: string, ms: number) {
  const child = spawn(process.execPath, [program, file, how, String(ms)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const over = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const first = new Promise<string>(resolve => {
    createInterface({ input: child.stdout }).once('line', resolve)
    child.once('exit', () => resolve('nothing'))
  })
  return { said: await first, over }
}

/** Somebody else locks the host's databases: before it starts, and those of the memories while it runs. */
export async function tortureLocks(run: PartRun): Promise<Finding[]> {
  if (!hasProgram('bwrap')) return untried('locked', 'bubblewrap is not installed')
  const scene = await openScene(run)
  const { testbed, traffic } = scene
  const { database, state } = testbed.layout
  const memories = join(state, 'memory', 'desk.db')
  const daemon = createRestartableDaemon(testbed)
  let gaveUp = 0
  let shutOut = 0
  const atStart = async (round: Round, { how, ms }: Lock, tally: Tally) => {
    await daemon.kill()
    const other = await hold(database, how, ms)
    if (other.said !== 'locked') tally.saw(`the database could not be locked: ${other.said}`)
    const started = daemon.start()
    await keepBusy(traffic, round, pastStart(started))
    if (daemon.isGone()) {
      gaveUp++
      if (!/locked/i.test(daemon.output()))
        tally.saw(`a start on a locked database failed with: ${daemon.output()}`)
    }
    await other.over
  }
  const meanwhile = async (round: Round, { how, ms }: Lock, tally: Tally) => {
    await daemon.up()
    if (!existsSync(memories)) await answersRequests(scene, 'memory')
    const other = await hold(memories, how, ms)
    const shut = await hold(database, how, 100)
    if (shut.said === 'busy') shutOut++
    else tally.saw(`the database of a running daemon could be locked: ${shut.said}`)
    const until = performance.now() + ms
    await keepBusy(traffic, round, () => daemon.isGone() || performance.now() > until)
    await Promise.all([other.over, shut.over])
    if (daemon.isGone()) tally.saw(`the daemon ended: ${daemon.output()}`)
  }
  const findings = await inOneScene(
    'locked',
    run,
    scene,
    async (round, tally) => {
      const { fault } = round
      if (fault.kind !== 'lock') return
      await (fault.file === 'database' ? atStart : meanwhile)(round, fault, tally)
      await daemon.up()
      for (const kind of ['message', 'memory'] as const) {
        const problem = await answersRequests(scene, kind)
        if (problem !== undefined) tally.saw(`${problem} after the lock was gone`)
      }
      await traffic.settle()
    },
    { before: daemon.stop },
  )
  const count = (what: string, seen: number) => ({
    what: `locked: ${what}`,
    seen: String(seen),
    bound: 'any number',
    ok: true,
  })
  return [
    ...findings,
    count('starts that gave up and said why', gaveUp),
    count('others who were not let in while it runs', shutOut),
  ]
}

type Lock = Extract<Fault, { kind: 'lock' }>

/** Until a moment after it is ready, or it has ended. */
function pastStart(started: Launched): () => boolean {
  let until = Number.POSITIVE_INFINITY
  started.ready.then(
    () => {
      until = performance.now() + 500
    },
    () => {
      until = 0
    },
  )
  return () => performance.now() > until
}
