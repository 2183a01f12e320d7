import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, findProgram } from '../../host/src/base/programs.ts'
import { bundlePath } from '../../host/src/runs/launch.ts'
import { type InstallationOptions, openInstallation } from '../src/daemon/installation.ts'
import { startDockerEngine } from '../src/sandboxes/engines.ts'
import { until } from '../src/until.ts'

/**
 * Agents as bad as they come, small shell programs in a real sandbox under a real daemon. Whatever they do, people are
 * told what happened, the run is in a clear state, nothing of it is left, others are answered meanwhile, the daemon
 * stays small, and the next message works. Most of them share one daemon, each as a group of its own: that is harder
 * for it, and quicker.
 */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const isProven = process.env.CI === 'true'
const attempt = missing === undefined || isProven ? test : test.skip

/** The daemon with everything it keeps, at its largest. */
const memoryLimit = 400 * 1024 * 1024

const badFile = 'bad.sh'
/** It reads its prompt, is good when it is asked to be, and else does what is written in its group's folder. */
const agent = `prompt=$(cat); case "$prompt" in *"be good"*) echo "I am good"; exit 0;; esac; . ./${badFile}`

interface Settings extends Pick<InstallationOptions, 'atEnd'> {
  agents?: Record<string, unknown>
  groups?: Record<string, unknown>
  environment?: (home: string) => Record<string, string>
}

type BadInstallation = Awaited<ReturnType<typeof openBadInstallation>>

const openBadInstallation = async ({ agents, groups = {}, environment, ...settings }: Settings) => {
  const config = {
    agents: {
      ...{ driver: 'command', command: ['/bin/sh', '-c', agent], idleMs: 300, closeMs: 1000, atOnce: 30 },
      ...{ temporaryMb: 16, memoryMb: 256, processes: 100, cpus: 1 },
      ...agents,
    },
    groups,
  }
  const installation = await openInstallation({
    ...settings,
    sandbox: 'bubblewrap',
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, ...environment?.(home) }
    },
  })
  const daemon = installation.daemon()
  if (!daemon) throw new Error('there is no daemon')
  let hasEnded = false
  daemon.exited.then(() => {
    hasEnded = true
  })
  let groupsAdded = 0

  /** a group with such an agent */
  const add = async (program: string, folder = `bad-${++groupsAdded}`) => {
    // Of this group alone, so that what is left of it can be told from everything else on the machine.
    const jid = `local:${randomUUID()}`
    await installation.addGroup({ folder, jid, name: 'Bad' })
    writeFileSync(join(installation.data, 'groups', folder, badFile), program)
    const tell = (text: string) =>
      installation.hatchway(
        'chat',
        '--group',
        folder,
        '--once',
        `@Hatch ${text}`,
        '--wait',
        '--timeout',
        '150',
      )
    const runs = () => installation.runs(folder)
    const inside = () => processesWith(jid)
    return {
      tell,
      runs,
      inside,
      /** it runs, or has run already; fails with what it was asked, if that fails */
      hasBegun: (answer: Promise<string>) =>
        Promise.race([answer, until(async () => (await runs()).length > 0)]),
      show: async () => installation.show((await runs())[0]?.id ?? ''),
      texts: () => installation.texts(folder),
      filesIn: (directory: string) => readdirSync(join(installation.data, 'ipc', folder, directory)),
      /** everything that is true after any of them */
      async isWellAfterwards() {
        await until(async () => (await runs()).every(({ status }) => status !== 'running'))
        await until(async () => inside().length === 0)
        expect(await tell('be good')).toContain('I am good')
        expect(await installation.say('be good')).toContain('I am good')
        expect(hasEnded).toBe(false)
        expect(peakOf(daemon.pid)).toBeLessThan(memoryLimit)
      },
    }
  }
  return { ...installation, add }
}

const readProc = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // It has ended, or is not ours to look into.
    return ''
  }
}
const processesWith = (word: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => readProc(`/proc/${pid}/environ`).includes(word))
const peakOf = (pid: number): number =>
  1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(readProc(`/proc/${pid}/status`))?.[1] ?? Number.NaN)

interface Case {
  name: string
  program: string
  /** what people hear, and the run says */
  told: string
}

/** A good one, on a busy machine, needs less. */
const hurryMs = 8000
const tooLong = `worked on one turn for more than ${hurryMs / 1000} s`

/** They go on until they are stopped. */
const endless: Case[] = [
  { name: 'never answers', program: 'sleep 1000', told: tooLong },
  { name: 'ignores being asked to end', program: 'trap "" TERM; while :; do sleep 1; done', told: tooLong },
  {
    name: 'leaves its family behind and ignores everything',
    program:
      'trap "" TERM HUP INT; setsid sleep 1000 & (trap "" TERM; sleep 1000) & while :; do sleep 1; done',
    told: tooLong,
  },
  { name: 'floods standard output without end', program: 'yes flood', told: tooLong },
  // Its time is up, or its memory: whichever comes first on this machine.
  { name: 'floods standard error without end', program: 'yes flood >&2', told: 'I could not answer that.' },
  { name: 'forks without end', program: 'f() { f | f & }; f; sleep 1000', told: 'I could not answer that.' },
]

/** They come to an end, and not to a good one. */
const failing: Case[] = [
  { name: 'exits at once', program: 'echo no idea >&2; exit 1', told: 'ended with code 1. It said: no idea' },
  {
    name: 'floods standard error and gives up',
    program: 'yes flood | head -c 100000000 >&2; exit 3',
    told: 'ended with code 3. It said:',
  },
  {
    name: 'fills its temporary files',
    program: 'dd if=/dev/zero of=/tmp/all bs=1M 2>&1 | grep -o "No space left" >&2; exit 4',
    told: 'No space left',
  },
  {
    name: 'takes all memory',
    program:
      'x=$(head -c 100000000 /dev/zero | tr "\\\\0" x); for i in 1 2 3 4; do x="$x$x"; done; echo "$x"',
    told: 'I could not answer that.',
  },
  {
    name: 'kills the runner',
    program: 'kill -9 $PPID; sleep 1000',
    told: 'The agent ended by itself (SIGKILL).',
  },
]

describe.concurrent(`Bad agents in bubblewrap${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  const closes: (() => Promise<void>)[] = []
  afterAll(async () => void (await Promise.all(closes.map(close => close()))))
  const atEnd = (close: () => Promise<void>) => void closes.push(close)
  let hurried: BadInstallation
  let patient: BadInstallation
  beforeAll(async () => {
    hurried = await openBadInstallation({ atEnd, agents: { runMs: hurryMs } })
    patient = await openBadInstallation({ atEnd, agents: { runMs: 60_000 } })
  })

  const fails = async (installation: BadInstallation, { program, told }: Case) => {
    const bad = await installation.add(program)
    const answer = bad.tell('do your worst')
    await bad.hasBegun(answer)
    expect(await installation.say('be good')).toContain('I am good')
    const heard = await answer
    expect(heard).toContain('I could not answer that.')
    expect(heard).toContain(told)
    await bad.isWellAfterwards()
    const runs = await bad.runs()
    expect(runs.slice(0, 3).map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
    const shown = await bad.show()
    if (!told.startsWith('I could')) expect(shown.error).toContain(told)
    expect(shown.error).not.toBe(null)
  }
  for (const one of endless) attempt(`one that ${one.name}`, () => fails(hurried, one))
  for (const one of failing) attempt(`one that ${one.name}`, () => fails(patient, one))

  attempt('one that floods and then ends well is cut short', async () => {
    const bad = await patient.add('yes flood | head -c 100000000')
    const answer = bad.tell('do your worst')
    await bad.hasBegun(answer)
    expect(await patient.say('be good')).toContain('I am good')
    const heard = await answer
    expect(heard.length).toBeLessThan(1_048_000)
    expect(heard).toContain('flood')
    await bad.isWellAfterwards()
    expect((await bad.show()).steps).toContainEqual(
      expect.objectContaining({ kind: 'notice', text: expect.stringContaining('printed more than') }),
    )
  })

  attempt('one that prints rubbish, escapes and what is internal', async () => {
    const bad = await patient.add(
      'head -c 20000 /dev/urandom | tr -d "<"; printf "seen \\\\377\\\\376\\\\033[2J\\\\033]0;title\\\\007 <internal>secret</internal> also <internal>never closed"',
    )
    const heard = await bad.tell('do your worst')
    expect(heard).toContain('seen')
    expect(heard).toContain('also')
    expect(heard).not.toMatch(/secret|never closed|internal/)
    expect([...heard].filter(character => character < ' ' && character !== '\n')).toEqual([])
    await bad.isWellAfterwards()
  })

  attempt('one that has nothing but internal things to say', async () => {
    const bad = await patient.add('echo "<internal>quiet</internal>"')
    expect(await bad.tell('do your worst')).toBe('')
    await bad.isWellAfterwards()
  })

  attempt('one that fills its hatch with thousands of files', async () => {
    const bad = await patient.add(
      'cd /workspace/ipc/messages; i=0; while [ $i -lt 5000 ]; do echo rubbish > $i.json; i=$((i+1)); done; echo filled',
    )
    expect(await bad.tell('do your worst')).toContain('filled')
    await bad.isWellAfterwards()
    await until(async () => bad.filesIn('messages').length === 0)
  })

  attempt('one that asks itself to finish, and leaves rubbish in its own inbox', async () => {
    const bad = await patient.add(
      'cd /workspace/ipc/input; echo rubbish > 1.json; ln -s /etc/passwd 2.json; mkfifo 3.json; mkdir -p 4.json/a/b; mkdir _drain; : > _close; : > "$(printf "\\\\377.json")"; echo littered',
    )
    expect(await bad.tell('do your worst')).toContain('littered')
    await bad.isWellAfterwards()
    expect((await bad.runs())[0]).toMatchObject({ status: 'done' })
    await until(async () => bad.filesIn('input').length === 0)
  })

  attempt('one that locks its inbox and puts a directory in the way of being asked to finish', async () => {
    const bad = await patient.add(
      'cd /workspace/ipc/input; mkdir -p _close/a; chmod 0 _close; chmod 500 .; echo blocked',
    )
    expect(await bad.tell('do your worst')).toContain('blocked')
    await bad.isWellAfterwards()
  })

  attempt('one that replaces what comes in by pipes and links', async ({ onTestFinished }) => {
    // Long enough for what comes to come, and short enough to wait for: what it was robbed of, a run waits for.
    const installation = await openBadInstallation({ atEnd: onTestFinished, agents: { runMs: 12_000 } })
    const bad = await installation.add(
      'cd /workspace/ipc/input; i=0; while [ $i -lt 150 ]; do for f in *.json; do [ -f "$f" ] && rm -f "$f" && if [ $((i % 2)) = 0 ]; then mkfifo "$f"; else ln -s /etc/passwd "$f"; fi; done; sleep 0.01; i=$((i+1)); done; echo replaced',
    )
    const first = bad.tell('do your worst')
    await bad.hasBegun(first)
    // Taken in time, or by the next run; never lost, and never twice.
    expect(await bad.tell('be good')).toContain('I am good')
    expect(await first).toContain('replaced')
    await bad.isWellAfterwards()
    const texts = await bad.texts()
    expect(texts.filter(text => text === 'replaced')).toHaveLength(1)
    expect(texts.join()).not.toContain('root:')
  })

  const isRoot = process.getuid?.() === 0
  const asRoot = isRoot || isProven ? attempt : test.skip
  asRoot('one that fills the disk the daemon itself writes to', async ({ onTestFinished }) => {
    const installation = await openBadInstallation({ atEnd: onTestFinished, agents: { runMs: 60_000 } })
    const bad = await installation.add(
      'dd if=/dev/zero of=/workspace/group/all bs=64k 2>/dev/null; echo filled',
      'bad',
    )
    const { data } = installation
    // The daemon is started anew on a disk of its own that is soon full.
    await installation.daemon()?.stop()
    const copy = mkdtempSync(join(tmpdir(), 'hatchway-copy-'))
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
    const shell = (line: string) => ask('/bin/sh', ['-c', line], { timeoutMs: 10_000 })
    await shell(
      `cp -a ${data}/. ${copy}/ && mount -t tmpfs -o size=32m none ${data} && cp -a ${copy}/. ${data}/`,
    )
    onTestFinished(async () => void (await shell(`umount -l ${data}`)))
    await installation.up()
    const answer = await bad.tell('do your worst')
    expect(statfsSync(data).bavail).toBe(0)
    expect(answer).toContain('filled')
    // What the store needs for a while it has taken in advance, so people are answered all the same.
    expect(await bad.tell('be good')).toContain('I am good')
    expect(await installation.say('be good')).toContain('I am good')
    rmSync(join(data, 'groups', 'bad', 'all'))
    expect(await bad.tell('be good')).toContain('I am good')
    expect(await installation.say('be good')).toContain('I am good')
    await until(async () => (await bad.runs()).every(({ status }) => status !== 'running'))
    expect((await bad.runs()).at(-1)).toMatchObject({ status: 'done' })
  })
})

const docker = await startDockerEngine()
afterAll(() => docker?.stop())
const withDocker = docker !== undefined || isProven ? attempt : test.skip

describe.concurrent(`Engines that fail${docker === undefined ? ' (needs a Docker engine)' : ''}`, () => {
  // Beside everything else, but one after the other: the second stops the engine.
  const inTurn = { concurrent: false }
  const image = 'hatchway-proof-missing:1'
  const environment = () => ({ DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '' })
  const groups = { imageless: { sandbox: 'docker', image }, engineless: { sandbox: 'docker' } }
  let close = async () => {}
  afterAll(() => close())
  let installation: BadInstallation
  beforeAll(async () => {
    const atEnd = (end: () => Promise<void>) => {
      close = end
    }
    installation = await openBadInstallation({ atEnd, agents: { runMs: 120_000 }, groups, environment })
  })

  withDocker(
    'an image that is missing is named, and once it is there the next message works',
    inTurn,
    async () => {
      const bad = await installation.add('exit 1', 'imageless')
      const answer = bad.tell('be good')
      await bad.hasBegun(answer)
      expect(await installation.say('be good')).toContain('I am good')
      expect(await answer).toContain(`The image ${image} is not on this machine. Run: docker pull ${image}`)
      expect((await bad.runs())[0]).toMatchObject({
        status: 'failed',
        error: expect.stringContaining('is not on this machine'),
      })
      const entry = JSON.stringify(['/opt/hatchway/node', '/opt/hatchway/agent.mjs', 'run'])
      const build = `
      root=$(mktemp -d) && mkdir -p $root/opt/hatchway &&
      libraries=$(ldd ${process.execPath} /bin/sh /bin/cat | grep -o '/[^ ]*\\.so[^ ]*' | sort -u) &&
      cp --parents -L /bin/sh /bin/cat $libraries $root &&
      cp ${process.execPath} $root/opt/hatchway/node && cp ${bundlePath} $root/opt/hatchway/agent.mjs &&
      cp -r ${dirname(bundlePath)}/bin $root/opt/hatchway/bin &&
      tar -C $root -c . | docker import --change 'ENTRYPOINT ${entry}' - ${image} && rm -r $root`
      const made = await ask('/bin/sh', ['-c', build], {
        timeoutMs: 60_000,
        environment: { ...process.env, ...environment() },
      })
      expect(made).toMatchObject({ code: 0 })
      await bad.isWellAfterwards()
    },
  )

  withDocker('an engine that stops in the middle of a run', inTurn, async () => {
    const bad = await installation.add('sleep 1000', 'engineless')
    const answer = bad.tell('do your worst')
    await Promise.race([answer, until(async () => bad.inside().length > 0)])
    docker?.process?.kill('SIGKILL')
    expect(await installation.say('be good')).toContain('I am good')
    const heard = await answer
    expect(heard).toContain('I could not answer that.')
    expect(heard).toContain('Docker')
    expect((await bad.runs())[0]).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Docker stopped while the run was under way'),
    })
    await docker?.restart()
    await bad.isWellAfterwards()
  })
})
