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
import { layoutOf } from '../../../host/src/base/layout.ts'
import { until } from '../../../host/src/base/pause.ts'
import { serveModel } from '../../../host/src/runs/model-gateway/socket.ts'
import type { ModelUsage } from '../../../host/src/runs/model-gateway/usage.ts'
import { inside, mountsFor } from '../../../host/src/sandboxes/mounts.ts'
import { scratchPrefix } from '../../../host/src/sandboxes/oci.ts'
import type {
  Mount,
  Sandbox,
  SandboxExit,
  SandboxProcess,
  SandboxSpec,
} from '../../../host/src/sandboxes/types.ts'
import type { EngineRig } from './engines.ts'
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
const open = path => attempt(() => fs.closeSync(fs.openSync(path, 'r+')))
// Every family by its number, with each kind of socket, which only Perl can ask for.
const tryAll = \`
  my @families = (0..45, 256, 65537, 4294967336, -1);
  for my $family (@families) { for my $kind (1..5) { if (socket(my $one, $family, $kind, 0)) { print "$family "; last } } }
  print '|';
  for my $family (@families) { for my $kind (1..5) { if (socketpair(my $one, my $other, $family, $kind, 0)) { print "$family "; last } } }
\`
// io_uring, and a call that is newer than every list: libraries use older ones where the kernel does not know them (38).
const tryUnknown = 'for my $call (425, 999) { $! = 0; syscall($call, 0, 0); print $! + 0, " " }'
// A program of a few bytes that asks for a unix socket: as this machine does, as i386 does, and as x32 does.
const asks = { own: 'b829000000bf01000000be0100000031d20f05', i386: 'b867010000bb01000000b90100000031d2cd80', x32: 'b829000040bf01000000be0100000031d20f05' }
const program = code => {
  const bytes = Buffer.alloc(256)
  bytes.write('7f454c4602010100', 0, 'hex')
  bytes.writeUInt16LE(2, 16); bytes.writeUInt16LE(62, 18); bytes.writeUInt32LE(1, 20)
  bytes.writeBigUInt64LE(0x400078n, 24); bytes.writeBigUInt64LE(64n, 32)
  bytes.writeUInt16LE(64, 52); bytes.writeUInt16LE(56, 54); bytes.writeUInt16LE(1, 56)
  bytes.writeUInt32LE(1, 64); bytes.writeUInt32LE(5, 68)
  bytes.writeBigUInt64LE(0x400000n, 80); bytes.writeBigUInt64LE(0x400000n, 88)
  bytes.writeBigUInt64LE(256n, 96); bytes.writeBigUInt64LE(256n, 104); bytes.writeBigUInt64LE(4096n, 112)
  // and ends with 1 if the answer was an error
  bytes.write(code + 'c1e81f89c7b83c0000000f05', 120, 'hex')
  const path = '/workspace/group/asks'
  fs.writeFileSync(path, bytes, { mode: 0o700 })
  try { return spawnSync(path).status } finally { fs.rmSync(path) }
}
const write = path => attempt(() => fs.writeFileSync(path, 'x'))
const facts = async () => ({
  uid: process.getuid(), gid: process.getgid(), user: os.userInfo().username,
  status: Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\\n').map(line => line.split(/:\\s*/))),
  environment: process.env, cwd: process.cwd(),
  interfaces: fs.readFileSync('/proc/net/dev', 'utf8').split('\\n').slice(2, -1).map(line => line.split(':')[0].trim()),
  sockets: spawnSync('perl', ['-e', tryAll], { encoding: 'utf8' }).stdout,
  unknown: spawnSync('perl', ['-e', tryUnknown], { encoding: 'utf8' }).stdout,
  programs: process.arch === 'x64' ? Object.fromEntries(Object.entries(asks).map(([name, code]) => [name, program(code) === 0])) : { own: true, i386: false, x32: false },
  lookup: await new Promise(resolve => require('node:dns').lookup('localhost', { all: true }, (error, all) => resolve(error ? error.code : all.length > 0))),
  settings: ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/net/ipv4/ip_forward', '/proc/sys/fs/mqueue/queues_max', '/proc/sysrq-trigger', '/proc/irq/default_smp_affinity', '/proc/kcore', '/sys/kernel/uevent_helper', '/sys/kernel/mm/transparent_hugepage/enabled'].map(path => [path, open(path)]),
  tells: ['/proc/keys', '/proc/timer_list', '/proc/kcore', '/sys/firmware/acpi/tables/DSDT'].map(path => [path, attempt(() => fs.readFileSync(path, 'utf8').slice(0, 100))]),
  mountTable: fs.readFileSync('/proc/self/mountinfo', 'utf8'),
  firstProcess: ['cmdline', 'environ', 'cgroup', 'mountinfo'].map(name => attempt(() => fs.readFileSync('/proc/1/' + name, 'utf8'))),
  routes: attempt(() => fs.readFileSync('/proc/net/route', 'utf8').trim().split('\\n').length - 1),
  host: await connect({ host: '127.0.0.1', port: PORT }),
  secret: attempt(() => fs.readFileSync(SECRET, 'utf8')), other: attempt(() => fs.readFileSync(OTHER, 'utf8')),
  hostFiles: ['/root', '/home', '/var/lib', '/work', '/etc/shadow', '/etc/ssh', '/var/run/docker.sock', '/sys/fs/cgroup/cgroup.procs'].map(path => [path, attempt(() => fs.statSync(path).isDirectory() ? fs.readdirSync(path) : 'file')]),
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

const mountsOf = (table: string) =>
  table.split('\n').map(line => {
    const [, , , , at = '', options = ''] = line.split(' ')
    return { at, options: options.split(',') }
  })

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
    const spec = specOf(ground, script, { user })
    const started = await of().start(spec)
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
    expect(found.namespace).not.toBe(0)
    expect(found.sockets).toBe('1 2 10 |1 ')
    expect(found.unknown).toBe('38 38 ')
    expect(found.programs).toEqual({ own: true, i386: false, x32: false })
    for (const [path, answer] of found.settings) expect(answer, path).toHaveProperty('error')
    for (const [path, answer] of found.tells) expect(answer.ok ?? '', path).toBe('')
    const settings = mountsOf(found.mountTable).findLast(({ at }) => at === '/proc' || at === '/proc/sys')
    expect(settings?.options).toContain('ro')
    // What it has mounted it can find in the mount table, by its place on the host; nothing else of the host.
    const [commandLine, ...others] = found.firstProcess
    expect(JSON.stringify(commandLine)).not.toContain(JSON.stringify(ground.ipc).slice(1, -1))
    for (const known of [spec.runId, spec.installation])
      expect(JSON.stringify([found.environment, found.mountTable, commandLine, others])).not.toContain(known)

    expect(found.interfaces).toEqual(['lo'])
    expect(found.lookup).toBe(true)
    expect(found.routes).toEqual({ ok: 0 })
    expect(found.host).not.toBe('connected')

    expect(found.secret).toEqual({ error: 'ENOENT' })
    expect(found.other).toEqual({ error: 'ENOENT' })
    const hostFiles = Object.fromEntries(found.hostFiles)
    expect(hostFiles['/home']).toEqual({ ok: ['agent'] })
    for (const path of ['/root', '/work', '/etc/shadow', '/etc/ssh', '/var/run/docker.sock'])
      expect(hostFiles[path], path).toHaveProperty('error')
    expect(JSON.stringify([found.environment, found.firstProcess])).not.toContain('sk-of-the-host')
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
    expect(usage).toEqual([{ model: 'm', inputTokens: 1, outputTokens: 2, cachedTokens: 0 }])
  })
}

const listens = `
require('node:net').createServer(socket => socket.end('from beside')).listen(7711, '127.0.0.1', () => console.log('ready'))
process.stdin.on('end', () => process.exit(0)).resume()
`
const dialsAndStays = `
require('node:net').connect(7711, '127.0.0.1').on('data', heard => console.log(heard + ', ' + require('node:fs').readFileSync('/proc/net/dev', 'utf8').match(/\\w+(?=:)/g)))
setInterval(() => {}, 1000)
`

/** A second container in the same network namespace, which goes however the run goes. */
export function describeSidecar(title: string, subject: () => Subject, left: () => Promise<string>): void {
  const node = { from: process.execPath, to: inside.node, writable: false }
  const beside = (script: string, word = '-') => ({
    sidecar: { command: [inside.node, '-e', script, word], environment: {}, mounts: [node] },
  })

  test(`${title}: a run and the program beside it share loopback alone, and end together`, async () => {
    const ground = prepare(subject().user)
    const { sandbox } = subject()
    const started = await sandbox.start(specOf(ground, dialsAndStays, beside(listens)))
    onTestFinished(() => started.kill())
    expect(await firstLine(started)).toBe('from beside, lo')
    await started.kill()
    expect(await left()).toBe('')

    const quick = await sandbox.start(specOf(ground, 'process.exit(3)', beside(listens)))
    expect(await collect(quick)).toMatchObject({ code: 3 })
    expect(await left()).toBe('')

    const unstartable = { ...beside(listens), command: ['/no/such/program'] }
    const never = await collect(await sandbox.start(specOf(ground, '', unstartable)))
    expect(never.problem).toContain('/no/such/program')
    expect(await left()).toBe('')
  })

  test(`${title}: a run whose program beside it fails says so instead of going on alone`, async () => {
    const ground = prepare(subject().user)
    const { sandbox } = subject()
    const broken = await collect(
      await sandbox.start(
        specOf(ground, dialsAndStays, beside('console.error("no port for you"); process.exit(1)')),
      ),
    )
    expect(broken.problem).toMatch(/leads to the model, could not be started: .*no port for you/)
    const word = `beside-${unique()}`
    const dies = await sandbox.start(specOf(ground, dialsAndStays, beside(listens, word)))
    onTestFinished(() => dies.kill())
    const ending = collect(dies)
    await firstLine(dies)
    for (const pid of inner(word)) process.kill(pid, 'SIGKILL')
    expect((await ending).problem).toContain('leads to the model, ended before it')
    expect(await left()).toBe('')
  })

  test(`${title}: both are ended at the next start when the host was killed`, async () => {
    const ground = prepare(subject().user)
    const killedHost = elsewhere(subject(), undefined, ground.home)
    const spec = specOf(ground, dialsAndStays, beside(listens))
    const orphan = await killedHost.start(spec)
    expect(await firstLine(orphan)).toBe('from beside, lo')
    process.kill(killedHost.pid(), 'SIGKILL')
    expect(await subject().sandbox.endOrphans(spec.installation)).toEqual([spec.runId])
    expect(await until(10_000, async () => (await left()) === '')).toBe(true)
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

/** Runs of a host that was killed: ours are ended, those of an installation beside us are not. */
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

/** A host killed between making a container and starting it leaves one without a process: only the engine knows it. */
export function describeNeverBegun(title: string, subject: () => Subject, ask: EngineRig['ask']): void {
  test(`${title}: a container that was made and never began is removed at the next start`, async () => {
    const { sandbox } = subject()
    const whole = await collect(await sandbox.start(specOf(prepare(agentUser), '')))
    expect(whole).toMatchObject({ code: 0 })
    const [image = ''] = (await ask('images', '--format', '{{.Repository}}:{{.Tag}}')).stdout.split('\n')
    const installation = `test-${unique()}`
    const labels = [
      `hatchway.installation=${installation}`,
      'hatchway.group=mine',
      'hatchway.run=never-began',
    ]
    const made = await ask('create', ...labels.flatMap(label => ['--label', label]), image, '/bin/true')
    expect(made).toMatchObject({ code: 0 })
    expect(await sandbox.endOrphans(`${installation}-beside-us`)).toEqual([])
    expect(await sandbox.endOrphans(installation)).toEqual(['never-began'])
    expect((await ask('ps', '--all', '--quiet')).stdout).toBe('')
  })
}

export function describeLeftovers(
  title: 'docker' | 'podman',
  subject: () => Subject,
  ask: EngineRig['ask'],
): void {
  test(`${title}: the folder of a killed host’s run is removed at the next start`, async () => {
    const killedHost = elsewhere(subject())
    const spec = specOf(prepare(agentUser), "console.log('up'); setInterval(() => {}, 1000)")
    const folders = () =>
      readdirSync(tmpdir()).filter(name => name.startsWith(scratchPrefix(title, spec.installation)))
    const orphan = await killedHost.start(spec)
    expect(await firstLine(orphan)).toBe('up')
    expect(folders()).toHaveLength(1)
    process.kill(killedHost.pid(), 'SIGKILL')
    expect(await subject().sandbox.endOrphans(spec.installation)).toEqual([spec.runId])
    expect(folders()).toEqual([])
  })

  test(`${title}: a container that somebody tried the engine with long ago is removed by the next who does`, async () => {
    const { sandbox } = subject()
    expect(await sandbox.check()).toMatchObject({ available: true })
    const [image = ''] = (await ask('images', '--format', '{{.Repository}}:{{.Tag}}')).stdout.split('\n')
    const tried = (at: number) =>
      ask(
        'create',
        '--label',
        'hatchway.installation=gone',
        '--label',
        `hatchway.run=trial-${at}-x`,
        image,
        '/x',
      )
    await tried(Date.now() - 3_600_000)
    const young = (await tried(Date.now())).stdout.trim()
    onTestFinished(async () => void (await ask('rm', '--force', young)))
    expect(await sandbox.check()).toMatchObject({ available: true })
    expect((await ask('ps', '--all', '--quiet', '--no-trunc')).stdout.trim()).toBe(young)
  })
}

/** Ctrl-C in a terminal ends every program of ours there, the engine's client included, and not what the engine runs. */
export function describeClientEnded(title: string, subject: () => Subject, ask: EngineRig['ask']): void {
  test(`${title}: a run whose client is ended from outside leaves no container`, async () => {
    const word = `client-${unique()}`
    const spec = specOf(prepare(agentUser), "console.log('up'); setInterval(() => {}, 1000)")
    const command = [...(spec.command ?? []), word]
    const started = await subject().sandbox.start({ ...spec, command })
    onTestFinished(() => started.kill())
    expect(await firstLine(started)).toBe('up')
    const programs = withWord(started.name).filter(pid => withWord('run').includes(pid))
    expect(programs).toHaveLength(1)
    for (const pid of programs) process.kill(pid, 'SIGKILL')
    await started.exited
    expect((await ask('ps', '--all', '--quiet')).stdout).toBe('')
    expect(inner(word)).toEqual([])
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
