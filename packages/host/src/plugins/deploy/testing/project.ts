import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '@hatchway/spool'
import { z } from 'zod'
import { configFor } from '../../../../../testing/src/daemon/in-process.ts'
import { hatchwayProgram } from '../../../../../testing/src/paths.ts'
import { statusAnswer } from '../../../api/answers.ts'
import { announcedSocket } from '../../../api/socket.ts'
import { registerGroups } from '../../../assemble/register.ts'
import { DaemonGone, overSocket } from '../../../client/over-socket.ts'
import { deploysAnswer } from '../answers.ts'

/**
 * A project in a git repository whose program is the real daemon: `start.mjs` runs this checkout's command line. What
 * else it does differs from revision to revision, and is up to the test.
 */
const good = `
// That this ends with its supervisor must not be npm's doing.
delete process.env.npm_lifecycle_event
if (existsSync('fault')) {
  process.env.HATCHWAY_FAULT = readFileSync('fault', 'utf8')
  rmSync('fault')
}
appendFileSync('starts', process.pid + ' ' + readFileSync('name', 'utf8') + '\\n')
process.argv = [process.argv[0], process.env.SAMPLE_HATCHWAY, 'up']
await import(process.env.SAMPLE_HATCHWAY)
`
export const program = {
  good,
  /** says something and ends */
  broken: `console.error('a part is missing'); process.exit(3)`,
  /** never comes up, and starts something that would outlive it */
  hanging: `
import('node:child_process').then(({ spawn }) => {
  appendFileSync('starts', process.pid + ' hangs ' + spawn('sleep', ['1000']).pid + '\\n')
})
process.on('SIGTERM', () => {})
setInterval(() => {}, 1000)`,
  /** the first time after it was deployed it ends at once */
  moody: `
if (existsSync('mood')) { rmSync('mood'); console.error('not today'); process.exit(4) }
${good}`,
} as const

/** Says what it was told, and asks for a deploy where it is told to. */
const agent = `
import { appendFileSync, existsSync, readFileSync, writeFileSync, renameSync } from 'node:fs'
const [ipc, heard] = process.argv.slice(2)
const told = [...readFileSync(0, 'utf8').matchAll(/<message [^>]*>([^]*?)<\\/message>/g)].map(found => found[1])
appendFileSync(heard, told.map(text => JSON.stringify(text) + '\\n').join(''))
if (told.some(text => text.includes('deploy again'))) {
  const file = ipc + '/tasks/again'
  writeFileSync(file + '.tmp', JSON.stringify({ version: 1, id: 'again', type: 'deploy', payload: { rebuild: true } }))
  renameSync(file + '.tmp', file + '.json')
  while (!existsSync(ipc + '/responses/again.json')) await new Promise(done => setTimeout(done, 20))
  writeFileSync(heard + '.again', readFileSync(ipc + '/responses/again.json'))
}
console.log('I heard: ' + told.join(' | '))
`

const answerSchema = z.object({
  ok: z.boolean(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
})

export interface ProjectOptions {
  healthMs?: number
  build?: string[]
  check?: string[]
  /** what runs `start.mjs`; left out: Node */
  under?: readonly string[]
}

/** The test that it is for, or whatever else says when it is over. */
interface Ending {
  onTestFinished(close: (about: { task: { result?: { state: string } | undefined } }) => Promise<void>): void
}

export async function openProject({ onTestFinished }: Ending, options: ProjectOptions = {}) {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-deploy-'))
  const repo = join(home, 'project')
  const data = join(home, 'data')
  const heard = join(home, 'heard')
  const ipc = join(data, 'ipc', 'main')
  mkdirSync(repo)
  writeFileSync(join(home, 'agent.mjs'), agent)
  writeFileSync(
    join(home, 'hatchway.config.mjs'),
    `export default ${JSON.stringify({
      data,
      durability: 'process',
      timezone: 'UTC',
      web: { enabled: 'no' },
      agents: {
        sandbox: 'process',
        driver: 'command',
        command: [process.execPath, join(home, 'agent.mjs'), ipc, heard],
      },
      deploy: {
        enabled: 'yes',
        directory: repo,
        build: options.build ?? ['cp name built'],
        check: options.check ?? [],
        healthMs: options.healthMs ?? 60_000,
      },
    })}`,
  )
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org', ...args], {
      cwd: repo,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  /** the revision */
  const commit = (name: string, start: string = program.good): string => {
    writeFileSync(join(repo, 'name'), name)
    writeFileSync(
      join(repo, 'start.mjs'),
      `import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'\n${start}`,
    )
    git('add', 'name', 'start.mjs')
    git('commit', '--quiet', '--message', name)
    return git('rev-parse', 'HEAD')
  }
  git('init', '--quiet', '--initial-branch', 'main')
  const first = commit('one')
  const group = (folder: string, main: boolean) =>
    ({ folder, jid: `local:${folder}`, name: folder, main, dialect: 'hatchway' }) as const
  await registerGroups(configFor(data), [group('main', true), group('other', false)])

  const supervisors: ChildProcess[] = []
  let output = ''
  const environment = {
    ...process.env,
    SAMPLE_HATCHWAY: hatchwayProgram,
    HATCHWAY_CONFIG: join(home, 'hatchway.config.mjs'),
    HATCHWAY_LOG_LEVEL: 'warn',
  }
  const supervise = () => {
    const under = options.under ?? [process.execPath, 'start.mjs']
    const child = spawn(process.execPath, [hatchwayProgram, 'supervise', '--data', data, '--', ...under], {
      cwd: repo,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    supervisors.push(child)
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    }
    return child
  }
  const end = async (name: NodeJS.Signals) => {
    const child = supervisors.pop()
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise(resolve => child.once('exit', resolve))
    child.kill(name)
    await exited
  }
  onTestFinished(async ({ task }) => {
    while (supervisors.length > 0) await end('SIGTERM')
    if (task.result?.state === 'fail') console.error(output)
    rmSync(home, { recursive: true, force: true })
  })

  const get = async <T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> => {
    try {
      const { status, text } = await overSocket(announcedSocket(data)).request('GET', path, undefined)
      return status === 200 ? schema.parse(JSON.parse(text)) : undefined
    } catch (error) {
      if (error instanceof DaemonGone) return undefined
      throw error
    }
  }
  const pid = async () => (await get('/status', statusAnswer))?.pid
  const responses = (folder: string, id: string) => join(data, 'ipc', folder, 'responses', `${id}.json`)
  const project = {
    first,
    repo,
    data,
    git,
    commit,
    supervise,
    end,
    output: () => output,
    pid,
    /** of the daemon, once it answers */
    up: () => patiently('the daemon answers', pid),
    deploys: async () => patiently('the daemon lists deploys', () => get('/deploys', deploysAnswer)),
    get: <T>(path: string, schema: z.ZodType<T>) => patiently('the daemon answers', () => get(path, schema)),
    ask: (id: string, payload: object, folder = 'main') =>
      post(
        join(data, 'ipc', folder, 'tasks'),
        JSON.stringify({ version: 1, id, type: 'deploy', payload }),
        {},
      ),
    drop: (folder: string, body: object) =>
      post(join(data, 'ipc', folder, 'tasks'), JSON.stringify(body), {}),
    isAnswered: (id: string) => existsSync(responses('main', id)),
    answer: (id: string, folder = 'main') =>
      patiently(`${id} is answered`, async () =>
        existsSync(responses(folder, id))
          ? answerSchema.parse(JSON.parse(readFileSync(responses(folder, id), 'utf8')))
          : undefined,
      ),
    forgetAnswer: (id: string) => rmSync(responses('main', id)),
    lines: (name: string) =>
      existsSync(join(repo, name)) ? readFileSync(join(repo, name), 'utf8').trim().split('\n') : [],
    /** what the agent was told, in order */
    heard: () => texts(heard),
    again: () =>
      patiently('the agent has asked again', async () =>
        existsSync(`${heard}.again`)
          ? answerSchema.parse(JSON.parse(readFileSync(`${heard}.again`, 'utf8')))
          : undefined,
      ),
    hatchway: (...args: string[]) =>
      new Promise<{ code: number | null; out: string; err: string }>(resolve => {
        const child = spawn(process.execPath, [hatchwayProgram, ...args, '--data', data], {
          cwd: home,
          env: environment,
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        let out = ''
        let err = ''
        child.stdout.on('data', (chunk: Buffer) => {
          out += chunk.toString()
        })
        child.stderr.on('data', (chunk: Buffer) => {
          err += chunk.toString()
        })
        child.once('close', code => resolve({ code, out, err }))
      }),
  }
  supervise()
  await project.up()
  return project
}

const texts = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map(line => z.string().parse(JSON.parse(line)))
    : []

const patienceMs = 90_000

export async function patiently<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await sleep(50)
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}
