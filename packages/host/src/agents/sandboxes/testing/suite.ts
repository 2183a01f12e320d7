import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { layoutOf } from '../../../layout.ts'
import { serveModel } from '../../model-socket.ts'
import type { ModelUsage } from '../../model-usage.ts'
import { inside, mountsFor } from '../../mounts.ts'
import type { Mount, Sandbox, SandboxExit, SandboxProcess, SandboxSpec } from '../../types.ts'
import { until } from '../child.ts'
import type { Errand } from './runner.process.ts'

/** The same questions to every sandbox, asked from inside with nothing but Node. */
export interface Subject {
  sandbox: Sandbox
  user: { uid: number; gid: number }
  /** what another process, or another user, needs to start a run in it */
  errand(spec: SandboxSpec): Errand
}

const isRoot = process.getuid?.() === 0
export const agentUser = isRoot
  ? { uid: 1000, gid: 1000 }
  : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

/** A part that this machine does not have: named and passed over on a laptop, a failure where CI=true. */
export function missing(part: string): void {
  const absent = test.skipIf(process.env.CI !== 'true')
  absent(`${part} is there to be tested`, () => {
    expect.fail(`${part} cannot be had here. Run: npm test, which installs it, as root.`)
  })
}

let counter = 0
const unique = () => `${process.pid}-${Date.now().toString(36)}-${counter++}`

export interface Ground {
  home: string
  mounts: readonly Mount[]
  ipc: string
  group: string
  other: string
  secret: string
}

/** A data directory with two groups, as the host makes it. */
export function prepare(user: { uid: number; gid: number }, hostIsUser = false): Ground {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-sandbox-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const layout = layoutOf(join(home, 'data, "one"'))
  const give = (path: string) => {
    if (isRoot) chownSync(path, user.uid, user.gid)
  }
  for (const folder of ['mine', 'other']) {
    mkdirSync(join(layout.ipc, folder), { recursive: true })
    mkdirSync(join(layout.groups, folder), { recursive: true })
    give(join(layout.groups, folder))
    for (const name of ['messages', 'tasks', 'input', 'responses']) {
      mkdirSync(join(layout.ipc, folder, name), { mode: 0o700 })
      give(join(layout.ipc, folder, name))
    }
  }
  mkdirSync(join(layout.groups, 'global'))
  writeFileSync(join(layout.groups, 'global', 'shared.md'), 'for all')
  writeFileSync(join(layout.groups, 'other', 'diary.md'), 'private')
  writeFileSync(join(layout.ipc, 'mine', 'current_tasks.json'), '"first"')
  const secret = join(home, 'secret')
  writeFileSync(secret, 'secret', { mode: 0o644 })
  const found = mountsFor({
    layout,
    group: { folder: 'mine' },
    owner: isRoot ? user : undefined,
    node: process.execPath,
    rules: { allowedFile: undefined, project: '/nowhere', data: join(home, 'data, "one"') },
  })
  if (!found.ok) throw new Error(found.problems.join('\n'))
  const group = join(layout.groups, 'mine')
  // Where root's sandboxes lie, nobody else can go; an ordinary user's host has a place of its own.
  chmodSync(home, hostIsUser ? 0o755 : 0o700)
  return {
    home,
    mounts: found.mounts,
    ipc: join(layout.ipc, 'mine'),
    group,
    other: join(layout.groups, 'other', 'diary.md'),
    secret,
  }
}

export function specOf(ground: Ground, script: string, change: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    installation: `test-${unique()}`,
    runId: unique(),
    group: { folder: 'mine' },
    command: [inside.node, '-e', script],
    workingDirectory: inside.group,
    environment: { HOME: inside.home, PATH: '/usr/bin:/bin' },
    mounts: ground.mounts,
    image: undefined,
    user: agentUser,
    limits: { memoryMb: 512, processes: 64, cpus: 1, temporaryMb: 8 },
    ...change,
  }
}

export interface Ended extends SandboxExit {
  output: string
  errors: string
}

export async function collect(started: SandboxProcess): Promise<Ended> {
  const output = { output: '', errors: '' }
  started.stdout.on('data', chunk => {
    output.output += chunk
  })
  started.stderr.on('data', chunk => {
    output.errors += chunk
  })
  const drained = new Promise(resolve => started.stdout.once('close', resolve))
  const exit = await started.exited
  await Promise.race([drained, new Promise(resolve => setTimeout(resolve, 1000).unref())])
  return { ...exit, ...output }
}

/** The first line it prints; a run that ends before is a failure with its reason. */
export async function firstLine(started: SandboxProcess): Promise<string> {
  let text = ''
  const line = new Promise<string>(resolve => {
    started.stdout.on('data', chunk => {
      text += chunk
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')))
    })
  })
  const early = started.exited.then(exit => {
    throw new Error(`it ended before it said anything: ${JSON.stringify(exit)}`)
  })
  // Once it has spoken, an end is no failure.
  early.catch(() => {})
  return Promise.race([line, early])
}

/** Processes anywhere on this machine with this word on their command line. */
export const withWord = (word: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word)
      } catch (error) {
        if (error instanceof Error && 'code' in error) return false
        throw error
      }
    })
    .map(Number)

/** The same sandbox, driven by a process of its own that may run as somebody else. */
export function elsewhere(
  subject: Pick<Subject, 'errand'>,
  as?: { uid: number; gid: number },
  temporary = tmpdir(),
): Pick<Sandbox, 'start'> & { pid(): number } {
  let last = 0
  return {
    pid: () => last,
    async start(spec) {
      const runner = fileURLToPath(new URL('./runner.process.ts', import.meta.url))
      const child = spawn(process.execPath, [runner, JSON.stringify(subject.errand(spec))], {
        stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
        detached: true,
        env: { ...process.env, TMPDIR: temporary },
        ...as,
      })
      last = child.pid ?? 0
      const news = child.stdio[3]
      if (!(news instanceof Readable)) throw new Error('no news')
      let name = ''
      const exited = new Promise<SandboxExit>(resolve => {
        createInterface({ input: news }).on('line', line => {
          const told = JSON.parse(line)
          if (told.name !== undefined) name = told.name
          else resolve(told.exit)
        })
      })
      const over = new Promise(resolve => child.once('exit', resolve))
      child.stdin.on('error', () => {})
      await until(20_000, () => name !== '' || child.exitCode !== null)
      return {
        name,
        stdin: child.stdin,
        stdout: child.stdout,
        stderr: child.stderr,
        exited,
        async kill() {
          child.kill('SIGTERM')
          await over
        },
      }
    },
  }
}

const probe = `
const fs = require('node:fs'), os = require('node:os'), net = require('node:net'), { spawnSync } = require('node:child_process')
const attempt = what => { try { return { ok: what() ?? true } } catch (error) { return { error: error.code ?? error.message } } }
const connect = options => new Promise(resolve => {
  const socket = net.connect(options)
  socket.setTimeout(3000, () => resolve('timeout'))
  socket.on('connect', () => resolve('connected')).on('error', error => resolve(error.code))
})
const fill = (path, most) => {
  const file = fs.openSync(path, 'w'), block = Buffer.alloc(1048576, 1)
  let written = 0
  try { while (written < most) { fs.writeSync(file, block); written++ } } catch (error) { return { written, error: error.code } }
  finally { fs.closeSync(file); fs.rmSync(path) }
  return { written }
}
const write = path => attempt(() => fs.writeFileSync(path, 'x'))
const facts = async () => ({
  uid: process.getuid(), gid: process.getgid(), user: os.userInfo().username,
  status: Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\\n').map(line => line.split(/:\\s*/))),
  environment: process.env, cwd: process.cwd(),
  interfaces: Object.keys(os.networkInterfaces()),
  routes: attempt(() => fs.readFileSync('/proc/net/route', 'utf8').trim().split('\\n').length - 1),
  host: await connect({ host: '127.0.0.1', port: PORT }),
  secret: attempt(() => fs.readFileSync(SECRET, 'utf8')), other: attempt(() => fs.readFileSync(OTHER, 'utf8')),
  hostFiles: ['/root', '/home', '/var/lib', '/work', '/etc/shadow', '/etc/ssh', '/var/run/docker.sock', '/sys/fs/cgroup/cgroup.procs'].map(path => [path, attempt(() => fs.statSync(path).isDirectory() ? fs.readdirSync(path) : 'file')]),
  firstEnvironment: attempt(() => fs.readFileSync('/proc/1/environ', 'utf8')),
  parent: write('/workspace/ipc/x.json'), snapshotWrite: write('/workspace/ipc/current_tasks.json'),
  swap: attempt(() => fs.renameSync('/workspace/ipc/tasks', '/workspace/ipc/other')),
  link: attempt(() => fs.symlinkSync('/etc', '/workspace/ipc/link')),
  moveHome: attempt(() => fs.renameSync('/workspace/group/.home', '/workspace/group/elsewhere')),
  drops: ['messages', 'tasks', 'input', 'responses'].map(name => write('/workspace/ipc/' + name + '/x.json')),
  group: write('/workspace/group/made.md'), home: write('/home/agent/.settings'),
  global: attempt(() => fs.readFileSync('/workspace/global/shared.md', 'utf8')), globalWrite: write('/workspace/global/x'),
  readOnly: ['/x', '/usr/x', '/etc/x', '/opt/hatchway/x', '/opt/hatchway/node', '/dev/x', '/run/x', '/home/x', '/workspace/x', '/var/tmp/x'].map(path => [path, write(path)]),
  temporary: fill('/tmp/fill', 64), shared: fill('/dev/shm/fill', 200),
  namespace: spawnSync('unshare', ['--user', '--map-root-user', 'true']).status,
  shell: spawnSync('/bin/sh', ['-c', 'echo $((6*7)) | cat'], { encoding: 'utf8' }).stdout,
})
facts().then(found => {
  console.log(JSON.stringify(found))
  process.stdin.once('data', () => { console.log(fs.readFileSync('/workspace/ipc/current_tasks.json', 'utf8')); process.exit(7) })
})
`

export function describeIsolation(
  title: string,
  of: () => Pick<Sandbox, 'start'>,
  user = agentUser,
  hostIsUser = false,
): void {
  test(`${title}: from inside there is no network, no host, no other group, and no key`, async () => {
    const ground = prepare(user, hostIsUser)
    const server = createServer(socket => socket.end()).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await until(5000, () => server.listening)
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const before = process.env.ANTHROPIC_API_KEY
    process.env.ANTHROPIC_API_KEY = 'sk-of-the-host'
    onTestFinished(() => {
      if (before === undefined) delete process.env.ANTHROPIC_API_KEY
      else process.env.ANTHROPIC_API_KEY = before
    })
    const script = probe
      .replace('PORT', String(port))
      .replace('SECRET', JSON.stringify(ground.secret))
      .replace('OTHER', JSON.stringify(ground.other))
    const started = await of().start(specOf(ground, script, { user }))
    onTestFinished(() => started.kill())
    const ending = collect(started)
    const found = JSON.parse(await firstLine(started))

    expect({ uid: found.uid, gid: found.gid, user: found.user }).toEqual({ ...user, user: 'agent' })
    const none = '0000000000000000'
    expect(found.status).toMatchObject({
      CapEff: none,
      CapPrm: none,
      CapBnd: none,
      CapAmb: none,
      NoNewPrivs: '1',
    })
    expect(found.cwd).toBe('/workspace/group')
    // Podman's own list of system calls allows new user namespaces; docs/sandboxes.md says so.
    if (!title.startsWith('podman')) expect(found.namespace).not.toBe(0)

    expect(found.interfaces.filter((name: string) => name !== 'lo')).toEqual([])
    expect(found.routes).toEqual({ ok: 0 })
    expect(found.host).not.toBe('connected')

    expect(found.secret).toEqual({ error: 'ENOENT' })
    expect(found.other).toEqual({ error: 'ENOENT' })
    const hostFiles = Object.fromEntries(found.hostFiles)
    expect(hostFiles['/home']).toEqual({ ok: ['agent'] })
    for (const path of ['/root', '/work', '/etc/shadow', '/etc/ssh', '/var/run/docker.sock'])
      expect(hostFiles[path], path).toHaveProperty('error')
    expect(JSON.stringify([found.environment, found.firstEnvironment])).not.toContain('sk-of-the-host')
    expect(Object.keys(found.environment)).not.toContain('ANTHROPIC_API_KEY')

    for (const refused of [
      found.parent,
      found.snapshotWrite,
      found.swap,
      found.link,
      found.moveHome,
      found.globalWrite,
    ])
      expect(refused).toHaveProperty('error')
    for (const [path, answer] of found.readOnly) expect(answer, path).toHaveProperty('error')
    expect(found.drops).toEqual(Array(4).fill({ ok: true }))
    expect([found.group, found.home]).toEqual([{ ok: true }, { ok: true }])
    expect(found.global).toEqual({ ok: 'for all' })
    expect(found.temporary).toMatchObject({ error: 'ENOSPC' })
    expect(found.temporary.written).toBeLessThanOrEqual(8)
    expect(found.shared).toMatchObject({ error: 'ENOSPC' })
    expect(found.shell).toBe('42\n')

    for (const path of ['messages/x.json', 'tasks/x.json'])
      expect(statSync(join(ground.ipc, path)).uid).toBe(user.uid)
    expect(statSync(join(ground.group, 'made.md')).uid).toBe(user.uid)

    writeFileSync(join(ground.home, 'next'), '"second"', { mode: 0o644 })
    renameSync(join(ground.home, 'next'), join(ground.ipc, 'current_tasks.json'))
    started.stdin.write('go\n')
    const end = await ending
    expect(end.output).toContain('"second"')
    expect({ code: end.code, signal: end.signal }).toEqual({ code: 7, signal: null })
    expect(end.problem).toBeUndefined()
  })
}

const asksTheModel = `
const { request } = require('node:http')
const sent = request({ socketPath: '/run/hatchway/model.sock', path: '/v1/messages', method: 'POST', headers: { 'x-api-key': 'placeholder' } }, async response => {
  let text = ''
  for await (const chunk of response) text += chunk
  const removed = (() => { try { require('node:fs').unlinkSync('/run/hatchway/model.sock'); return 'yes' } catch (error) { return error.code } })()
  console.log(JSON.stringify({ status: response.statusCode, text, removed }))
})
sent.end('{}')
`

/** The one way out: a socket in a directory that only the host can enter otherwise. */
export function describeModel(title: string, of: () => Pick<Sandbox, 'start'>, user = agentUser): void {
  test(`${title}: the model answers through the socket, which the run cannot replace`, async () => {
    const ground = prepare(user)
    const keys: unknown[] = []
    const upstream = createHttpServer((request, response) => {
      keys.push(request.headers['x-api-key'])
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"model":"m","usage":{"input_tokens":1,"output_tokens":2}}')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void upstream.close())
    await until(5000, () => upstream.listening)
    const address = upstream.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const usage: ModelUsage[] = []
    const directory = join(ground.home, 'state', 'model')
    const socket = await serveModel({
      directory,
      owner: isRoot ? user : undefined,
      url: `http://127.0.0.1:${port}`,
      key: 'sk-of-the-host',
      onUsage: one => usage.push(one),
    })
    onTestFinished(() => socket.close())
    const mounts = [...ground.mounts, { from: directory, to: inside.model, writable: false }]
    const started = await of().start(specOf(ground, asksTheModel, { user, mounts }))
    onTestFinished(() => started.kill())
    const line = JSON.parse(await firstLine(started))
    expect(line).toMatchObject({ status: 200, text: expect.stringContaining('usage') })
    expect(line.removed).not.toBe('yes')
    expect(keys).toEqual(['sk-of-the-host'])
    expect(usage).toEqual([{ model: 'm', inputTokens: 1, outputTokens: 2 }])
  })
}

/** Children of children that leave their group and do not listen. */
const tree = (word: string, depth = 3) => `
const { spawn } = require('node:child_process')
process.on('SIGTERM', () => {})
const grow = ${depth}
const code = depth => "process.on('SIGTERM', () => {});" + (depth > 0 ? "require('node:child_process').spawn(process.execPath, ['-e', " + JSON.stringify(code(depth - 1)) + ", '${word}'], { detached: true, stdio: 'ignore' });" : '') + 'setInterval(() => {}, 1000)'
spawn(process.execPath, ['-e', code(grow - 1), '${word}'], { detached: true, stdio: 'ignore' })
console.log('grown')
setInterval(() => {}, 1000)
`

export function describeEnding(
  title: string,
  of: () => Pick<Sandbox, 'start'>,
  user = agentUser,
  hostIsUser = false,
): void {
  test(`${title}: kill ends the whole tree, also what does not listen and what has left its group`, async () => {
    const ground = prepare(user, hostIsUser)
    const word = `tree-${unique()}`
    const started = await of().start(specOf(ground, tree(word), { user }))
    onTestFinished(() => started.kill())
    const ending = collect(started)
    await firstLine(started)
    const grown = await until(20_000, () => withWord(word).length >= 3)
    expect(grown, 'the tree has grown').toBe(true)
    await started.kill()
    expect(withWord(word)).toEqual([])
    expect((await ending).code).toBeNull()
    // A second time is no fault.
    await started.kill()
  })

  test(`${title}: a run that listens ends by itself when it is asked to`, async () => {
    const ground = prepare(user, hostIsUser)
    const script = `process.on('SIGTERM', () => { console.log('good bye'); process.exit(3) }); console.log('up'); setInterval(() => {}, 1000)`
    const started = await of().start(specOf(ground, script, { user }))
    const ending = collect(started)
    await firstLine(started)
    await started.kill()
    const end = await ending
    expect(end.output).toContain('good bye')
    expect(end.code).toBe(3)
  })
}

const bomb = (word: string) => `
const { spawn } = require('node:child_process')
let made = 0, refused = 0
for (let i = 0; i < 200; i++) {
  const child = spawn('sleep', ['1000', '${word}'].slice(0, 1), { argv0: '${word}', stdio: 'ignore' })
  child.on('error', () => refused++)
  if (child.pid) made++
}
setTimeout(() => console.log(JSON.stringify({ made, refused })), 200)
setInterval(() => {}, 1000)
`

const hungry = `
const held = []
const eat = () => { held.push(Buffer.alloc(16 * 1048576, 1)); if (held.length < 100) setTimeout(eat, 20); else console.log('full') }
eat()
setInterval(() => {}, 1000)
`

export function describeLimits(
  title: string,
  of: () => Pick<Sandbox, 'start'>,
  user = agentUser,
  hostIsUser = false,
): void {
  test(`${title}: a fork bomb meets its limit, and is ended`, async () => {
    const ground = prepare(user, hostIsUser)
    const word = `bomb-${unique()}`
    const limits = { memoryMb: 512, processes: 40, cpus: 1, temporaryMb: 8 }
    const started = await of().start(specOf(ground, bomb(word), { user, limits }))
    onTestFinished(() => started.kill())
    const ending = collect(started)
    const line = await firstLine(started)
    const { made, refused } = JSON.parse(line)
    expect(made).toBeGreaterThan(0)
    expect(made).toBeLessThan(40)
    expect(made + refused).toBe(200)
    await started.kill()
    expect(withWord(word)).toEqual([])
    await ending
  })

  test(`${title}: a run that takes too much memory is ended, with the reason`, async () => {
    const ground = prepare(user, hostIsUser)
    const limits = { memoryMb: 192, processes: 40, cpus: 1, temporaryMb: 8 }
    const started = await of().start(specOf(ground, hungry, { user, limits }))
    onTestFinished(() => started.kill())
    const end = await collect(started)
    expect(end.output).not.toContain('full')
    expect(end.signal).toBe('SIGKILL')
    expect(end.problem).toContain('192 MB of memory')
  })
}

/** Runs of a host that was killed: ours are ended, those of an installation beside us are not (lesson 22). */
export function describeOrphans(title: string, subject: () => Subject, survives: boolean): void {
  test(`${title}: what a killed host left running is ended at the next start, and nobody else’s`, async () => {
    const ground = prepare(subject().user)
    const word = `orphan-${unique()}`
    const script = `console.log('up'); setInterval(() => {}, 1000)`
    const spec = (installation: string, runId: string) =>
      specOf(ground, script, {
        installation,
        runId,
        user: subject().user,
        command: [...(specOf(ground, script).command ?? []), word, `${word}-${installation}`],
      })
    const [ours, theirs] = [`ours-${unique()}`, `theirs-${unique()}`]
    const killedHost = elsewhere(subject(), undefined, ground.home)
    const killed = await killedHost.start(spec(ours, 'killed-run'))
    const neighbour = await elsewhere(subject()).start(spec(theirs, 'neighbour-run'))
    onTestFinished(() => neighbour.kill())
    const own = await subject().sandbox.start(spec(ours, 'own-run'))
    onTestFinished(() => own.kill())
    for (const run of [killed, neighbour, own]) {
      expect(await firstLine(run)).toBe('up')
    }
    process.kill(killedHost.pid(), 'SIGKILL')
    if (!survives) expect(await until(5000, () => inner(`${word}-${ours}`).length === 1)).toBe(true)
    const ended = await subject().sandbox.endOrphans(ours)
    if (survives) expect(ended).toEqual(['killed-run'])
    expect(
      await until(5000, () => inner(`${word}-${ours}`).length === 1),
      'only our own live run is left',
    ).toBe(true)
    expect(inner(`${word}-${theirs}`)).toHaveLength(1)
    expect(await subject().sandbox.endOrphans(ours)).toEqual([])
    await own.kill()
    await neighbour.kill()
    expect(withWord(word)).toEqual([])
  })
}

/** The payload itself, not the programs on the host's side that carry its command line. */
const inner = (word: string): number[] =>
  withWord(word).filter(pid => {
    try {
      const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      return program === inside.node || program === process.execPath
    } catch (error) {
      if (error instanceof Error && 'code' in error) return false
      throw error
    }
  })
