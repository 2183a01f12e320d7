#!/usr/bin/env node
// What a command of the README needs beside `npm ci`. Called by npm start, npm test and the commands of npm run: installs what is
// missing where it may, names it where it may not, and does nothing, quickly, where all is there. `npm ci` itself calls it with
// `install`.
//
// Plain JavaScript without dependencies, because it also runs on an older Node and before anything is known to work.
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync, rmSync, statSync } from 'node:fs'
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
  { package: 'dovecot-imapd', program: 'dovecot', service: true, without: 'tests of e-mail' },
  // It brings no program that people call.
  {
    package: 'dovecot-submissiond',
    program: '../lib/dovecot/submission',
    service: true,
    without: 'tests of e-mail',
  },
  { package: 'opensmtpd', program: 'smtpd', service: true, without: 'tests of e-mail' },
  { package: 'prosody', service: true, without: 'tests of XMPP on a real server' },
  { package: 'ngircd', service: true, without: 'tests of IRC on a real server' },
]

/**
 * Folders with a lock file of their own, so that `npm ci` brings only what building and starting needs. `needed`: the command
 * cannot go on without it; `options`: for npm; `holds`: what has to be in its scope @anthropic-ai, too.
 */
const tools = { folder: ['packages'], what: 'tools of the check and of tests', needed: true }
const bench = { folder: ['bench'], what: 'what only the benchmark uses', needed: true }
const claude = {
  folder: ['packages', 'agent', 'src', 'drivers', 'claude'],
  what: 'Claude with its program',
  holds: /^claude-agent-sdk-/,
}
const claudeTypes = {
  folder: claude.folder,
  what: 'types of the Claude SDK',
  needed: true,
  options: ['--os=none', '--cpu=none'],
}
const strangers = {
  folder: ['packages', 'testing', 'src', 'strangers'],
  what: 'programs of other projects',
  options: ['--omit=optional'],
}
const nodes = {
  folder: ['packages', 'testing', 'src', 'nodes'],
  what: 'the oldest and the newest Node that can run Hatchway',
}
const mcp = {
  folder: ['packages', 'testing', 'src', 'mcp'],
  what: 'the conformance suite of MCP',
}

const root = fileURLToPath(new URL('..', import.meta.url))

const isPath = path => statSync(path, { throwIfNoEntry: false }) !== undefined
/** Those of a folder's folders that have a lock file. */
const foldersIn = (path, what) =>
  (isPath(join(root, ...path)) ? readdirSync(join(root, ...path), { withFileTypes: true }) : [])
    .filter(entry => entry.isDirectory() && isPath(join(root, ...path, entry.name, 'package-lock.json')))
    .map(({ name }) => ({ folder: [...path, name], what: `${what} ${name}`, needed: true }))

/** The libraries of chat apps, which people install with `npx hatchway channels add`, and what people use in tests. */
const channels = foldersIn(['packages', 'host', 'src', 'plugins', 'channels'], 'the library of the channel')
const peers = foldersIn(['packages', 'testing', 'src', 'channels'], 'the app of people in tests of')
/** The channel that the benchmark compares with its library alone. */
const measuredChannels = channels.filter(({ folder }) => folder.at(-1) === 'telegram')

const purposes = {
  start: { programs: [sandbox] },
  check: { folders: [tools, bench, claudeTypes, ...channels, ...peers] },
  test: {
    programs: tests,
    folders: [tools, bench, claude, strangers, nodes, mcp, ...channels, ...peers],
    servers: ['synapse.mjs'],
  },
  torture: {
    programs: [...tests, { package: 'faketime', without: 'clocks that jump' }],
    folders: [tools, claude],
  },
  bench: {
    programs: [
      sandbox,
      { package: 'redis-server', service: true, without: 'the comparison with Redis Streams' },
      { package: 'nats-server', service: true, without: 'the comparison with NATS JetStream' },
      { package: 'gcc', without: 'the program in C, which shows the limit' },
      { package: 'libc6-dev', program: 'gcc', without: 'the program in C, which shows the limit' },
      { package: 'chromium', without: 'the figures of the console' },
    ],
    folders: [bench, ...measuredChannels],
  },
}

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

/** The agent's side in one file, for the sandboxes; the console in the browser; the program in few files. */
const makeParts = () =>
  make(['agent', 'bundle.ts'], 'the agent’s side') &&
  make(['web', 'build.ts'], 'the console') &&
  make(['cli', 'build.ts'], 'the program')

/** The Node package brings 67 MB of headers, for those who compile against it. */
function removeHeaders() {
  const packages = join(root, 'node_modules', 'node', 'node_modules')
  if (!isPath(packages)) return
  for (const name of readdirSync(packages).filter(name => name.startsWith('node-')))
    rmSync(join(packages, name, 'include'), { recursive: true, force: true })
}

function isUpToDate({ folder, holds }) {
  const place = join(root, ...folder)
  const installed = statSync(join(place, 'node_modules', '.package-lock.json'), { throwIfNoEntry: false })
  if (installed === undefined || installed.mtimeMs <= statSync(join(place, 'package-lock.json')).mtimeMs)
    return false
  return !holds || readdirSync(join(place, 'node_modules', '@anthropic-ai')).some(name => holds.test(name))
}

/** Exactly the versions in the folder's lock file. Whether the command can go on. */
async function installFolder(part) {
  const { folder, what, needed = false, options = [] } = part
  const path = folder.join('/')
  if (isUpToDate(part)) return true
  if (process.env.HATCHWAY_NO_INSTALL) {
    say(`${what} is not installed. Run: npm ci --prefix ${path} --ignore-scripts`)
    return !needed
  }
  say(`installing ${what} with npm in ${path}, which may take a minute or two`)
  const startedAt = Date.now()
  const progress = setInterval(
    () => say(`still installing ${what}: ${Math.round((Date.now() - startedAt) / 1000)} s`),
    20_000,
  )
  const { status, stderr } = await npmCi(join(root, ...folder), options)
  clearInterval(progress)
  if (status === 0) return true
  const isOffline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT/.test(stderr)
  say(`${what} could not be installed${needed ? '' : ', and tests of it will not run'}.`)
  if (isOffline) say('npm cannot reach its registry. Connect this machine to the network, and try again.')
  else for (const line of stderr.trim().split('\n').slice(-8)) say(`  ${line}`)
  return !needed
}

const npmCi = (cwd, options) =>
  new Promise(done => {
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...options]
    const npm = spawn('npm', ['ci', ...flags], { cwd, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    npm.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    npm.on('error', error => done({ status: 1, stderr: error.message }))
    npm.on('close', status => done({ status, stderr }))
  })

/** A server that Debian's release does not have: its script says what goes wrong, and tests say what they lack. */
const bringServer = script =>
  new Promise(done => {
    const stdio = ['ignore', 'ignore', 'inherit']
    spawn(process.execPath, [join(root, 'scripts', script)], { stdio })
      .on('close', done)
      .on('error', done)
  })

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

async function main(purpose) {
  if (purpose === 'install') {
    removeHeaders()
    return 0
  }
  const needs = Object.hasOwn(purposes, purpose) ? purposes[purpose] : undefined
  if (needs === undefined) {
    say(`say what for: ${Object.keys(purposes).join(', ')}`)
    return 64
  }
  if (!checkNode()) return 1
  const { programs = [], folders = [], servers = [] } = needs
  const bringing = Promise.all([Promise.all(folders.map(installFolder)), ...servers.map(bringServer)])
  // Meanwhile: all of them wait for the network most of the time.
  installPrograms(programs)
  const [installed] = await bringing
  if (installed.includes(false)) return 1
  // The check reads the sources only.
  return purpose === 'check' || makeParts() ? 0 : 1
}

function installPrograms(programs) {
  const missing = () => programs.filter(part => !isInstalled(part))
  if (missing().length === 0) return
  install(missing())
  const still = missing()
  for (const part of still) say(`${part.package} is not installed: ${part.without} will not run.`)
  if (still.length > 0) {
    say(
      `Install it yourself, on Debian with: sudo apt-get install ${still.map(part => part.package).join(' ')}`,
    )
  }
}

process.exitCode = await main(process.argv[2] ?? '')
