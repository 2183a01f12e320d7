#!/usr/bin/env node
// What a command of the README needs beside `npm ci`. Called by npm start, npm test and the commands of npm run: installs what is
// missing where it may, names it where it may not, and does nothing, quickly, where all is there.
//
// Plain JavaScript without dependencies, because it also runs on an older Node and before anything is known to work.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const neededNode = 24

const sandbox = {
  package: 'bubblewrap',
  program: 'bwrap',
  without: 'agents in a sandbox that needs no engine (docker or podman does as well)',
}

/** `program`: what to look for where it is not called like its package; `service`: Debian starts it, which is not wanted. */
const tests = [
  sandbox,
  { package: 'tmux', without: 'tests of the views on a terminal' },
  { package: 'strace', without: 'tests that make system calls fail' },
  { package: 'docker.io', program: 'dockerd', service: true, without: 'tests of agents in Docker' },
  { package: 'containerd', service: true, without: 'tests of agents in Docker' },
  { package: 'podman', service: true, without: 'tests of agents in Podman' },
  { package: 'runc', without: 'tests of agents in Docker and Podman' },
  { package: 'chromium', without: 'tests of the console in a browser' },
  { package: 'busybox-static', program: 'busybox', without: 'tests of an image without Node' },
  { package: 'radicale', service: true, without: 'tests of calendars on a real server' },
]

const purposes = {
  start: [sandbox],
  test: tests,
  torture: [...tests, { package: 'faketime', without: 'clocks that jump' }],
  bench: [
    sandbox,
    { package: 'redis-server', service: true, without: 'the comparison with Redis Streams' },
    { package: 'nats-server', service: true, without: 'the comparison with NATS JetStream' },
    { package: 'gcc', without: 'the program in C, which shows the limit' },
    { package: 'libc6-dev', program: 'gcc', without: 'the program in C, which shows the limit' },
    { package: 'chromium', without: 'the figures of the console' },
  ],
}

const root = fileURLToPath(new URL('..', import.meta.url))
const ownNode = join(root, 'node_modules', 'node', 'bin', 'node')
const say = line => process.stderr.write(`setup: ${line}\n`)

// Debian puts some servers where an ordinary user's PATH does not look.
const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/sbin'].filter(
  Boolean,
)

const canRun = path => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}
const isInstalled = part => isThere(part.program ?? part.package)
const isThere = program => places.some(place => canRun(join(place, program)))

function checkNode() {
  if (Number.parseInt(process.versions.node, 10) >= neededNode) return true
  const { stdout } = spawnSync(ownNode, ['--version'], { encoding: 'utf8' })
  if (Number.parseInt((stdout ?? '').replace('v', ''), 10) >= neededNode) return true
  say(`the project's own Node ${neededNode} is missing. Run: npm ci`)
  say('If it still is afterwards, npm was told not to run scripts. Then run: npm rebuild node')
  return false
}

/** Quick where it is up to date. */
function make(script, what) {
  const node = Number.parseInt(process.versions.node, 10) >= neededNode ? process.execPath : ownNode
  const { status, stderr } = spawnSync(node, [join(root, 'packages', ...script)], { encoding: 'utf8' })
  if (status === 0) return true
  say(`${what} could not be made: ${stderr}`)
  return false
}

/** The agent's side in one file, for the sandboxes; and the console in the browser. */
const makeParts = () =>
  make(['agent', 'bundle.ts'], 'the agent’s side') && make(['web', 'build.ts'], 'the console')

/** Programs of other projects' containers, of exactly the versions in their own lock file. They are 230 MB. */
function installStrangers() {
  const folder = join(root, 'packages', 'host', 'proof', 'strangers')
  const installed = join(folder, 'node_modules', '.package-lock.json')
  const lock = join(folder, 'package-lock.json')
  const wanted = statSync(lock).mtimeMs
  if ((statSync(installed, { throwIfNoEntry: false })?.mtimeMs ?? 0) > wanted) return
  if (process.env.HATCHWAY_NO_INSTALL) return
  say('installing programs of other projects with npm, which may take a minute')
  const options = ['--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', ['ci', ...options], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) say(`they could not be installed, and tests of them will not run: ${stderr}`)
}

/** The command that makes us root, if we are not; undefined: there is none that asks for nothing. */
function becomeRoot() {
  if (process.getuid?.() === 0) return []
  if (isThere('sudo') && spawnSync('sudo', ['-n', 'true']).status === 0) return ['sudo', '-n']
  return undefined
}

function install(missing) {
  if (process.env.HATCHWAY_NO_INSTALL || !isThere('apt-get')) return
  const asRoot = becomeRoot()
  if (asRoot === undefined) return
  const names = missing.map(part => part.package).join(' ')
  const apt = 'apt-get -qq -o DPkg::Lock::Timeout=120'
  // A file that answers 101 keeps Debian from starting what it has just installed.
  const keepStopped = missing.some(part => part.service)
    ? 'p=/usr/sbin/policy-rc.d; if [ ! -e $p ]; then trap "rm -f $p" EXIT; printf "#!/bin/sh\\nexit 101\\n" > $p; chmod 755 $p; fi; '
    : ''
  const script = `export DEBIAN_FRONTEND=noninteractive; ${keepStopped}i="${apt} install -y --no-install-recommends ${names}"; $i || { ${apt} update && $i; }`
  say(`installing ${names} with apt-get, which may take a minute`)
  const [command, ...args] = [...asRoot, 'sh', '-c', script]
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) return
  const lines = error ? [error.message] : `${stdout}${stderr}`.trim().split('\n').slice(-5)
  for (const line of lines) say(`  ${line}`)
}

function main(purpose) {
  const parts = Object.hasOwn(purposes, purpose) ? purposes[purpose] : undefined
  if (parts === undefined) {
    say(`say what for: ${Object.keys(purposes).join(', ')}`)
    return 64
  }
  if (!checkNode() || !makeParts()) return 1
  if (parts === tests) installStrangers()
  const missing = () => parts.filter(part => !isInstalled(part))
  if (missing().length === 0) return 0
  install(missing())
  const still = missing()
  for (const part of still) say(`${part.package} is not installed: ${part.without} will not run.`)
  if (still.length > 0) {
    say(
      `Install it yourself, on Debian with: sudo apt-get install ${still.map(part => part.package).join(' ')}`,
    )
  }
  return 0
}

process.exitCode = main(process.argv[2] ?? '')
