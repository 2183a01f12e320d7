import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig, registerGroups } from '../../../host/src/index.ts'
import { type Launched, launch } from '../daemon/process.ts'
import { createRandom, type Random } from '../random.ts'
import type { Closing } from './closing.ts'
import { brokenCalls, pipelineSteps } from './faults.ts'
import { createLedger } from './ledger.ts'

/**
 * A daemon that is killed again and again while files keep coming: at a random moment, at a chosen step of the
 * pipeline, or crippled by a system call that fails. In the end nothing may be lost and nothing done twice.
 */
export interface TortureOptions {
  seed: number
  kills: number
  /** whether to make system calls fail as well, which needs strace */
  inject: boolean
  durability: 'full' | 'process'
  progress(line: string): void
  /** is told what has to be taken down if this is broken off */
  closing?: Closing
}

export interface TortureResult {
  kills: number
  posted: number
  problems: string[]
  /** how often each way to end the daemon was used */
  ways: Record<string, number>
}

const groups = [
  { folder: 'main', jid: 'test:main', name: 'Main', main: true, dialect: 'hatchway' },
  { folder: 'family', jid: 'test:family', name: 'Family', main: false, dialect: 'hatchway' },
  { folder: 'work', jid: 'test:work', name: 'Work', main: false, dialect: 'hatchway' },
] as const

const enoughWaiting = 5000

export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { seed, kills, inject, durability, progress } = options
  const random = createRandom(seed)
  const data = mkdtempSync(join(tmpdir(), 'hatchway-torture-'))
  const ways: Record<string, number> = {}
  let running: Launched | undefined
  options.closing?.add(async () => {
    await running?.kill()
    rmSync(data, { recursive: true, force: true })
  })
  const environment = {
    HATCHWAY_DURABILITY: durability,
    HATCHWAY_LIMITS_OPEN_TASKS: '1000000',
  }
  try {
    await registerGroups(await loadConfig({ data }), groups)
    const ledger = createLedger(data, groups)
    for (let killed = 0; killed < kills; killed++) {
      const way = chooseWay(random, inject)
      ways[way.name] = (ways[way.name] ?? 0) + 1
      const daemon = launch(data, { env: { ...way.env, ...environment }, under: way.under })
      running = daemon
      await abuse(daemon, ledger, random, way.untilKilledMs)
      if ((killed + 1) % 50 === 0)
        progress(`pipeline: ${killed + 1} of ${kills} kills, ${ledger.posted()} files posted`)
    }
    const last = launch(data, { env: environment })
    running = last
    await last.ready
    await quiet(ledger)
    await last.stop()
    return { kills, posted: ledger.posted(), problems: ledger.audit(), ways }
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
}

interface Way {
  name: string
  env: Record<string, string>
  under: string[]
  untilKilledMs: number
}

function chooseWay(random: Random, inject: boolean): Way {
  const untilKilledMs = 100 + random.below(400)
  if (inject && random.chance(0.15)) {
    const injection = random.pick(brokenCalls)
    const when = `${1 + random.below(60)}..${60 + random.below(60)}+${1 + random.below(5)}`
    return {
      name: `strace ${injection}`,
      env: {},
      under: ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `inject=${injection}:when=${when}`],
      untilKilledMs: untilKilledMs + 1500,
    }
  }
  if (random.chance(0.7)) {
    const step = random.pick(pipelineSteps)
    return {
      name: step,
      env: { HATCHWAY_FAULT: `${step}:${1 + random.below(30)}` },
      under: [],
      untilKilledMs: untilKilledMs + 300,
    }
  }
  return { name: 'at a random moment', env: {}, under: [], untilKilledMs }
}

/** Posts without pause until the daemon has ended, by its own fault point or by ours. */
async function abuse(
  daemon: Launched,
  ledger: ReturnType<typeof createLedger>,
  random: Random,
  ms: number,
): Promise<void> {
  let ended = false
  const exited = daemon.exited.then(() => {
    ended = true
  })
  // Half of them may be killed while they still start; the others have begun, however slow the machine is.
  let deadline = random.chance(0.5) ? Date.now() + ms : Number.POSITIVE_INFINITY
  daemon.ready.then(
    () => {
      deadline = Math.min(deadline, Date.now() + ms)
    },
    () => {},
  )
  while (!ended && Date.now() < deadline) {
    const posts = random.below(8)
    // On a slow machine a daemon may be killed before it has begun; over the limit of waiting files it rightly refuses.
    if (ledger.waiting() < enoughWaiting) for (let i = posts; i > 0; i--) ledger.post(random)
    await sleep(random.below(15))
  }
  if (!ended) await daemon.kill()
  await exited
}

/** `ready` says that what was waiting is finished; answers held back for a snapshot follow within a moment. */
async function quiet(ledger: ReturnType<typeof createLedger>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (!ledger.pending()) return
    await sleep(50)
  }
}
