import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { bundlePath } from '../src/agents/launch.ts'
import { ask, findProgram } from '../src/agents/sandboxes/command.ts'
import { startDockerEngine } from '../src/agents/sandboxes/testing/engines.ts'
import { openHouse, until } from './house.ts'

/**
 * Agents as bad as they come, small shell programs in a real sandbox under a real daemon. Whatever they do, people are
 * told what happened, the run is in a clear state, nothing of it is left, others are answered meanwhile, the daemon
 * stays small, and the next message works.
 */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const isProven = process.env.CI === 'true'
const attempt = missing === undefined || isProven ? test : test.skip

/** The daemon with everything it keeps, at its largest. */
const memoryLimit = 400 * 1024 * 1024

/** It reads its prompt, and is good when it is asked to be. */
const agent = (bad: string) =>
  `prompt=$(cat); case "$prompt" in *"be good"*) echo "I am good"; exit 0;; esac; ${bad}`

interface Settings {
  agents?: Record<string, unknown>
  groups?: Record<string, unknown>
  environment?: (home: string) => Record<string, string>
}

const openBadHouse = async (bad: string, settings: Settings = {}) => {
  const command = ['/bin/sh', '-c', agent(bad)]
  const config = {
    agents: {
      ...{ driver: 'command', command, idleMs: 300, runMs: 3000, closeMs: 1000 },
      ...{ temporaryMb: 16, memoryMb: 512, processes: 100 },
      ...settings.agents,
    },
    groups: settings.groups ?? {},
  }
  const house = await openHouse({
    sandbox: 'bubblewrap',
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, ...settings.environment?.(home) }
    },
  })
  const daemon = house.daemon()
  if (!daemon) throw new Error('there is no daemon')
  // Of this test alone, so that what is left of it can be told from everything else on the machine.
  const jid = `local:${randomUUID()}`
  await house.hatchway('groups', 'add', '--folder', 'bad', '--jid', jid, '--name', 'Bad')
  let hasEnded = false
  daemon.exited.then(() => {
    hasEnded = true
  })
  const ask = (text: string) =>
    house.hatchway('chat', '--group', 'bad', '--once', `@Hatch ${text}`, '--wait', '--timeout', '150')
  const runs = async (): Promise<{ id: string; status: string; error: string | null }[]> =>
    JSON.parse(await house.hatchway('runs', 'list', '--group', 'bad', '--json'))
  const inside = () => processesWith(jid)
  return {
    ...house,
    ask,
    runs,
    inside,
    isRunning: () => until(async () => (await runs()).some(({ status }) => status === 'running')),
    show: async (id: string) => JSON.parse(await house.hatchway('runs', 'show', id, '--json')),
    /** everything that is true after any of them */
    async isWellAfterwards() {
      await until(async () => (await runs()).every(({ status }) => status !== 'running'))
      await until(async () => inside().length === 0)
      expect(await ask('be good')).toContain('I am good')
      expect(await house.say('be good')).toContain('I am good')
      expect(hasEnded).toBe(false)
      expect(peakOf(daemon.pid)).toBeLessThan(memoryLimit)
    },
  }
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
  settings?: Settings
}

const tooLong = 'worked on one turn for more than 3 s'

const failing: Case[] = [
  { name: 'exits at once', program: 'echo no idea >&2; exit 1', told: 'ended with code 1. It said: no idea' },
  { name: 'never answers', program: 'sleep 1000', told: tooLong },
  { name: 'ignores being asked to end', program: 'trap "" TERM; while :; do sleep 1; done', told: tooLong },
  {
    name: 'leaves its family behind and ignores everything',
    program:
      'trap "" TERM HUP INT; setsid sleep 1000 & (trap "" TERM; sleep 1000) & while :; do sleep 1; done',
    told: tooLong,
  },
  { name: 'floods standard output without end', program: 'yes flood', told: tooLong },
  { name: 'floods standard error without end', program: 'yes flood >&2', told: tooLong },
  {
    name: 'floods standard error and gives up',
    program: 'yes flood | head -c 300000000 >&2; exit 3',
    told: 'ended with code 3. It said:',
    settings: { agents: { runMs: 60_000 } },
  },
  { name: 'forks without end', program: 'f() { f | f & }; f; sleep 1000', told: 'I could not answer that.' },
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

describe(`Bad agents in bubblewrap${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  for (const { name, program, told, settings } of failing) {
    attempt(`one that ${name}`, async () => {
      const house = await openBadHouse(program, settings)
      const answer = house.ask('do your worst')
      await house.isRunning()
      expect(await house.say('be good')).toContain('I am good')
      const heard = await answer
      expect(heard).toContain('I could not answer that.')
      expect(heard).toContain(told)
      await house.isWellAfterwards()
      const runs = await house.runs()
      expect(runs.slice(0, 3).map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
      const shown = await house.show(runs[0]?.id ?? '')
      if (!told.startsWith('I could')) expect(shown.error).toContain(told)
      expect(shown.error).not.toBe(null)
    })
  }

  attempt('one that floods and then ends well is cut short', async () => {
    const house = await openBadHouse('yes flood | head -c 400000000', { agents: { runMs: 60_000 } })
    const answer = house.ask('do your worst')
    await house.isRunning()
    expect(await house.say('be good')).toContain('I am good')
    const heard = await answer
    expect(heard.length).toBeLessThan(1_048_000)
    expect(heard).toContain('flood')
    await house.isWellAfterwards()
    const [run] = await house.runs()
    expect((await house.show(run?.id ?? '')).steps).toContainEqual(
      expect.objectContaining({ kind: 'notice', text: expect.stringContaining('printed more than') }),
    )
  })

  attempt('one that prints rubbish, escapes and what is internal', async () => {
    const print =
      'head -c 20000 /dev/urandom | tr -d "<"; printf "seen \\\\377\\\\376\\\\033[2J\\\\033]0;title\\\\007 <internal>secret</internal> also <internal>never closed"'
    const house = await openBadHouse(print)
    const heard = await house.ask('do your worst')
    expect(heard).toContain('seen')
    expect(heard).toContain('also')
    expect(heard).not.toMatch(/secret|never closed|internal/)
    expect([...heard].filter(character => character < ' ' && character !== '\n')).toEqual([])
    await house.isWellAfterwards()
  })

  attempt('one that has nothing but internal things to say', async () => {
    const house = await openBadHouse('echo "<internal>quiet</internal>"')
    expect(await house.ask('do your worst')).toBe('')
    await house.isWellAfterwards()
  })

  attempt('one that fills its hatch with thousands of files', async () => {
    const fill =
      'cd /workspace/ipc/messages; i=0; while [ $i -lt 5000 ]; do echo rubbish > $i.json; i=$((i+1)); done; echo filled'
    const house = await openBadHouse(fill, { agents: { runMs: 60_000 } })
    expect(await house.ask('do your worst')).toContain('filled')
    await house.isWellAfterwards()
    await until(async () => readdirSync(join(house.data, 'ipc', 'bad', 'messages')).length === 0)
  })

  attempt('one that asks itself to finish, and leaves rubbish in its own inbox', async () => {
    const litter =
      'cd /workspace/ipc/input; echo rubbish > 1.json; ln -s /etc/passwd 2.json; mkfifo 3.json; mkdir -p 4.json/a/b; mkdir _drain; : > _close; : > "$(printf "\\\\377.json")"; echo littered'
    const house = await openBadHouse(litter)
    expect(await house.ask('do your worst')).toContain('littered')
    await house.isWellAfterwards()
    expect((await house.runs())[0]).toMatchObject({ status: 'done' })
    await until(async () => readdirSync(join(house.data, 'ipc', 'bad', 'input')).length === 0)
  })

  attempt('one that locks its inbox and puts a directory in the way of being asked to finish', async () => {
    const block = 'cd /workspace/ipc/input; mkdir -p _close/a; chmod 0 _close; chmod 500 .; echo blocked'
    const house = await openBadHouse(block)
    expect(await house.ask('do your worst')).toContain('blocked')
    await house.isWellAfterwards()
  })

  attempt('one that replaces what comes in by pipes and links', async () => {
    const replace =
      'cd /workspace/ipc/input; i=0; while [ $i -lt 40 ]; do for f in *.json; do [ -f "$f" ] && rm -f "$f" && if [ $((i % 2)) = 0 ]; then mkfifo "$f"; else ln -s /etc/passwd "$f"; fi; done; sleep 0.05; i=$((i+1)); done; echo replaced'
    const house = await openBadHouse(replace, { agents: { runMs: 15_000 } })
    const first = house.ask('do your worst')
    await house.isRunning()
    // Taken in time, or by the next run; never lost, and never twice.
    expect(await house.ask('be good')).toContain('I am good')
    expect(await first).toContain('replaced')
    await house.isWellAfterwards()
    const texts = await house.texts()
    expect(texts.filter(text => text === 'replaced')).toHaveLength(1)
    expect(texts.join()).not.toContain('root:')
  })

  const isRoot = process.getuid?.() === 0
  const asRoot = isRoot || isProven ? attempt : test.skip
  asRoot('one that fills the disk the daemon itself writes to', async () => {
    const fill = 'dd if=/dev/zero of=/workspace/group/all bs=64k 2>/dev/null; echo filled'
    const house = await openBadHouse(fill, { agents: { runMs: 60_000 } })
    const { data } = house
    // The daemon is started anew on a disk of its own that is soon full.
    await house.daemon()?.stop()
    const copy = mkdtempSync(join(tmpdir(), 'hatchway-copy-'))
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
    const shell = (line: string) => ask('/bin/sh', ['-c', line], { timeoutMs: 10_000 })
    await shell(
      `cp -a ${data}/. ${copy}/ && mount -t tmpfs -o size=32m none ${data} && cp -a ${copy}/. ${data}/`,
    )
    onTestFinished(async () => void (await shell(`umount -l ${data}`)))
    await house.up()
    const answer = await house.ask('do your worst')
    expect(statfsSync(data).bavail).toBe(0)
    expect(answer).toContain('filled')
    // What the store needs for a while it has taken in advance, so people are answered all the same.
    expect(await house.ask('be good')).toContain('I am good')
    expect(await house.say('be good')).toContain('I am good')
    rmSync(join(data, 'groups', 'bad', 'all'))
    expect(await house.ask('be good')).toContain('I am good')
    expect(await house.say('be good')).toContain('I am good')
    await until(async () => (await house.runs()).every(({ status }) => status !== 'running'))
    expect((await house.runs()).at(-1)).toMatchObject({ status: 'done' })
  })
})

const docker = await startDockerEngine()
afterAll(() => docker?.stop())
const withDocker = docker !== undefined || isProven ? attempt : test.skip

describe(`Engines that fail${docker === undefined ? ' (needs a Docker engine)' : ''}`, () => {
  const environment = () => ({ DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '' })

  withDocker('an image that is missing is named, and once it is there the next message works', async () => {
    const image = 'hatchway-proof-missing:1'
    const house = await openBadHouse('exit 1', {
      groups: { bad: { sandbox: 'docker', image } },
      environment,
    })
    const answer = house.ask('be good')
    await house.isRunning()
    expect(await house.say('be good')).toContain('I am good')
    expect(await answer).toContain(`The image ${image} is not on this machine. Run: docker pull ${image}`)
    expect((await house.runs())[0]).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('is not on this machine'),
    })
    const entry = JSON.stringify(['/opt/hatchway/node', '/opt/hatchway/agent.mjs', 'run'])
    const build = `
      root=$(mktemp -d) && mkdir -p $root/opt/hatchway &&
      libraries=$(ldd ${process.execPath} /bin/sh /bin/cat | grep -o '/[^ ]*\\.so[^ ]*' | sort -u) &&
      cp --parents -L /bin/sh /bin/cat $libraries $root &&
      cp ${process.execPath} $root/opt/hatchway/node && cp ${bundlePath} $root/opt/hatchway/agent.mjs &&
      tar -C $root -c . | docker import --change 'ENTRYPOINT ${entry}' - ${image} && rm -r $root`
    const made = await ask('/bin/sh', ['-c', build], {
      timeoutMs: 60_000,
      environment: { ...process.env, ...environment() },
    })
    expect(made).toMatchObject({ code: 0 })
    await house.isWellAfterwards()
  })

  withDocker('an engine that stops in the middle of a run', async () => {
    const house = await openBadHouse('sleep 1000', {
      agents: { runMs: 120_000 },
      groups: { bad: { sandbox: 'docker' } },
      environment,
    })
    const answer = house.ask('do your worst')
    await until(async () => house.inside().length > 0)
    docker?.process?.kill('SIGKILL')
    expect(await house.say('be good')).toContain('I am good')
    const heard = await answer
    expect(heard).toContain('I could not answer that.')
    expect(heard).toContain('Docker')
    expect((await house.runs())[0]).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Docker stopped while the run was under way'),
    })
    await docker?.restart()
    await house.isWellAfterwards()
  })
})
