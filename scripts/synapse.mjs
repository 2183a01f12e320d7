#!/usr/bin/env node
// Brings a real Matrix homeserver for tests into .cache/synapse. Debian 12 has no Synapse, so it comes from Debian's next release
// (sid): apt works out what it needs and checks the signatures, and each package is unpacked into a folder of the project.
// Nothing on the machine changes, and no root is needed. Called by scripts/setup.mjs; ends quickly where it is there already.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cache = fileURLToPath(new URL('../.cache', import.meta.url))
const place = join(cache, 'synapse')
const work = join(cache, `synapse-${process.pid}`)
const apt = 'apt-get'
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** all of it together; a good line takes a minute */
const limitMs = 600_000
const progressMs = 20_000
const mostUnpackedAtOnce = 4

const say = line => process.stderr.write(`setup: ${line}\n`)
const isThere = path => statSync(path, { throwIfNoEntry: false }) !== undefined

/** The mirror that this machine gets Debian from. */
function findMirror() {
  const format = '$(ORIGIN) $(LABEL) $(REPO_URI)'
  const { stdout } = spawnSync(apt, ['indextargets', '--format', format, 'Created-By: Packages'], {
    encoding: 'utf8',
  })
  const found = (stdout ?? '').split('\n').find(line => line.startsWith('Debian Debian '))
  if (found === undefined)
    throw new Error('this machine gets no packages from Debian, or apt-get update was never run')
  return found.split(' ')[2]
}

const run = (command, args, signal) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], signal })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    child.on('error', error =>
      reject(signal.aborted ? new Error(`it took longer than ${limitMs / 60_000} minutes`) : error),
    )
    child.on('close', status =>
      status === 0
        ? resolve(undefined)
        : reject(new Error(stderr.trim().split('\n').slice(-3).join(' ') || `${command} failed`)),
    )
  })

/** apt with everything it reads and writes in a folder of ours, as on a machine where nothing is installed. */
function aptOptions(mirror) {
  for (const folder of ['lists/partial', 'archives/partial'])
    mkdirSync(join(work, folder), { recursive: true })
  writeFileSync(join(work, 'status'), '')
  writeFileSync(join(work, 'sources.list'), `deb [signed-by=${keyring}] ${mirror} sid main\n`)
  const settings = {
    'Dir::State': work,
    'Dir::State::lists': join(work, 'lists'),
    'Dir::State::status': join(work, 'status'),
    'Dir::Cache': work,
    'Dir::Cache::archives': join(work, 'archives'),
    'Dir::Etc::sourcelist': join(work, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'APT::Sandbox::User': '',
    'APT::Install-Recommends': 'false',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
    'Debug::NoLocking': 'true',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

async function unpack(files, into, signal) {
  const waiting = [...files]
  const one = async () => {
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop())
      await run('dpkg', ['-x', join(work, 'archives', file), into], signal)
  }
  await Promise.all(Array.from({ length: mostUnpackedAtOnce }, one))
}

async function bring(signal, step) {
  const options = aptOptions(findMirror())
  step('reading the list of packages')
  await run(apt, [...options, '-qq', 'update'], signal)
  step('downloading about 65 MB')
  await run(apt, [...options, '-qq', '-y', '--download-only', 'install', 'matrix-synapse'], signal)
  const files = readdirSync(join(work, 'archives')).filter(name => name.endsWith('.deb'))
  step(`unpacking ${files.length} packages`)
  const tree = join(work, 'tree')
  mkdirSync(tree)
  await unpack(files, tree, signal)
  rmSync(place, { recursive: true, force: true })
  renameSync(tree, place)
}

async function main() {
  if (isThere(place)) return
  const without = 'tests of Matrix on a real server will not run'
  if (process.env.HATCHWAY_NO_INSTALL) return say(`Synapse is not installed: ${without}.`)
  if (!isThere(keyring)) return say(`Synapse comes from Debian, which this is not: ${without}.`)
  say('bringing Synapse for tests from Debian sid into .cache, which may take a minute')
  const startedAt = Date.now()
  let current = ''
  const progress = setInterval(
    () => say(`still bringing Synapse, ${current}: ${Math.round((Date.now() - startedAt) / 1000)} s`),
    progressMs,
  )
  try {
    await bring(AbortSignal.timeout(limitMs), step => {
      current = step
    })
  } catch (error) {
    say(`Synapse could not be brought: ${error instanceof Error ? error.message : error}`)
    say(`${without}. To try again, run: node scripts/synapse.mjs`)
  } finally {
    clearInterval(progress)
    rmSync(work, { recursive: true, force: true })
  }
}

await main()
