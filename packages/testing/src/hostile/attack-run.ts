import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom } from '../random.ts'
import type { Finding } from '../report.ts'
import { leftoversOf } from './leftovers.ts'
import type { waves as allWaves, SandboxChoice } from './options.ts'
import { resourceUsageOf, watchResourceUsage } from './resource-usage.ts'
import { answers, attackInRounds, linesOf } from './rounds.ts'
import { screensOf } from './screens.ts'
import { evil, prepareTestbed, type Testbed } from './testbed.ts'
import { findingsOf } from './verdict.ts'
import type { Testimony } from './witness.ts'

export interface AttackRunOptions {
  sandbox: SandboxChoice
  seed: number
  seconds: number
  waves: typeof allWaves
  docker: NodeJS.ProcessEnv | undefined
  progress(text: string): void
  atEnd(close: () => Promise<void>): void
  /** how many files are thought up */
  samples: number
  /** how long the other group is measured without an attack */
  quietMs: number
  waveSeconds: number
}

/**
 * One daemon, one sandbox, one hostile group, from the first quiet second to the last look at what is left:
 *
 *   the testbed  groups that have something to lose, files that nobody may read, a hostile agent
 *   quiet        another group asks for something all along; so long does that take without an attack
 *   rounds       the hostile agent is told to attack, turn by turn, by a message as people write it
 *   the look     at canaries, screens, logs and leftovers while the daemon runs, and at its store once it has ended
 */
export async function runAttacks(options: AttackRunOptions): Promise<Finding[]> {
  const { sandbox, seed, progress, atEnd, waves, waveSeconds, seconds } = options
  const marker = `marker${randomBytes(8).toString('hex')}`
  const secret = `secret${randomBytes(8).toString('hex')}`
  let log = ''
  progress('the testbed is prepared')
  const testbed = await prepareTestbed({
    ...{ sandbox, seed, marker, secret, docker: options.docker, atEnd, samples: options.samples },
    hear: text => {
      log += text
    },
    runMs: 1000 * waveSeconds + 8000,
  })
  const { installation, layout, canaries } = testbed
  const daemon = installation.daemon()
  if (!daemon) throw new Error('there is no daemon')
  let ended: string | undefined
  let isStopping = false
  void daemon.exited.then(({ code, signal }) => {
    if (!isStopping) ended = `it ended (${signal ?? code}): ${log.slice(-500)}`
  })

  // Everything has run once: what follows is compared with a daemon at work.
  for (const group of ['evil', 'main']) {
    const problem = await answers(testbed, group)
    if (problem !== undefined)
      throw new Error(`the agent of ${group} does not answer: ${problem}\n${log.slice(-2000)}`)
  }
  const doctorBefore = await doctor(testbed)
  const other = startWitness(
    lstatSync(join(layout.ipc, 'witness', 'tasks')).uid,
    join(layout.ipc, 'witness'),
    atEnd,
  )
  await other.begun
  progress('quiet')
  await sleep(500)
  other.endPhase('warm-up')
  await sleep(options.quietMs)
  other.endPhase('quiet')

  const usage = watchResourceUsage(daemon.pid)
  const hasEnded = () => ended !== undefined
  const random = createRandom(seed)
  const endPhase = (name: string) => {
    other.endPhase(name)
    progress(`  the host has ${Math.round(resourceUsageOf(daemon.pid).rssMb)} MB of memory`)
  }
  const rounds = await attackInRounds({
    endPhase,
    testbed,
    random,
    seed,
    waves,
    waveSeconds,
    seconds,
    progress,
    hasEnded,
  })
  usage.stop()
  endPhase('afterwards')
  progress('what is left is handled')
  const unhandled = await unhandledAfterAll(testbed, hasEnded)
  const testimony = await other.end()

  progress('looking from outside')
  // The canaries first: what looks for their secret reads them.
  const touched = canaries.flatMap(canary => canary.changes().map(change => `${canary.path}: ${change}`))
  const lines = linesOf(testbed)
  const isUp = ended === undefined
  const screens = isUp ? await screensOf(installation, evil.folder) : {}
  const again = isUp ? await answers(testbed, 'evil') : 'there is no daemon'
  const audit = isUp ? await installation.hatchway('audit', 'verify').catch(String) : 'there is no daemon'
  const doctorAfter = isUp ? await doctor(testbed) : []
  for (
    let n = 0;
    isUp && n < 100 && (await installation.runs()).some(({ status }) => status === 'running');
    n++
  )
    await sleep(200)
  const leftovers = await leftoversOf({
    data: installation.data,
    installation: testbed.installationId,
    temporary: join(installation.home, 'temporary'),
    docker: options.docker,
  })
  isStopping = true
  await daemon.stop()

  return findingsOf({
    ...{
      sandbox,
      waves,
      testbed,
      marker,
      secret,
      log,
      lines,
      rounds,
      testimony,
      usage,
      ended,
      screens,
      progress,
    },
    ...{ touched, unhandled, again, audit, leftovers },
    newProblems: doctorAfter.filter(line => !doctorBefore.includes(line)),
  })
}

function startWitness(uid: number, directory: string, atEnd: AttackRunOptions['atEnd']) {
  const child = fork(join(import.meta.dirname, 'witness.ts'), [String(uid), directory], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  atEnd(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const silent: Testimony = { asked: 1, answered: 0, complaints: ['no answers for a minute'], phases: [] }
  return {
    begun: new Promise(resolve => child.once('message', resolve)),
    endPhase: (name: string) => void child.send(name),
    async end(): Promise<Testimony> {
      const said = new Promise<Testimony>(resolve =>
        child.once('message', (told: Testimony) => resolve(told)),
      )
      child.send('end')
      const testimony = await Promise.race([said, sleep(60_000).then(() => silent)])
      child.kill('SIGKILL')
      await exited
      return testimony
    },
  }
}

/** What it says is bad; numbers change. */
async function doctor({ installation }: Testbed): Promise<string[]> {
  const text = await installation.hatchway('doctor').catch(error => String(error.stdout ?? error))
  return text
    .split('\n')
    .filter(line => /\bBAD\b/.test(line))
    .map(line => line.replace(/\d+/g, 'N'))
}

const isPosted = (name: string) => name.endsWith('.json') && !name.startsWith('.')

/** Its names that are still there after as long as it may take; other groups go on. */
async function unhandledAfterAll({ layout }: Testbed, hasEnded: () => boolean): Promise<string[]> {
  const left = () => [
    ...readdirSync(layout.spool).flatMap(bucket =>
      readdirSync(join(layout.spool, bucket))
        .filter(name => name.includes(`~${evil.folder}~`))
        .map(name => `spool/${bucket}/${name}`),
    ),
    ...['messages', 'tasks', 'groups'].flatMap(drop =>
      readdirSync(join(layout.ipc, evil.folder, drop))
        .filter(isPosted)
        .map(name => join(drop, name)),
    ),
  ]
  for (let n = 0; n < 300 && left().length > 0 && !hasEnded(); n++) await sleep(200)
  return left()
}
