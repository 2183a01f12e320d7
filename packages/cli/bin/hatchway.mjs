#!/usr/bin/env node
// Plain JavaScript for any Node from 16 on: it starts the bundle, or, in a clone whose sources are newer, the sources. Where
// Node is too old for that, it finds the Node that `npm ci` installed, and starts that.

// `import` evaluates all that a part of Node exports, and short commands need little of it. An older Node has only that.
const take = async name => process.getBuiltinModule?.(name) ?? (await import(name))
const [
  { existsSync, statSync },
  { createRequire, enableCompileCache },
  { homedir },
  { join },
  { fileURLToPath },
] = await Promise.all(['node:fs', 'node:module', 'node:os', 'node:path', 'node:url'].map(take))

/** The bundle needs less than the sources, which are TypeScript. */
const needed = { bundle: [22, 13], sources: [24, 0] }
const ownPackage = fileURLToPath(new URL('..', import.meta.url))
const isClone = existsSync(join(ownPackage, 'src'))
const start = (await isBundleCurrent()) ? 'bundle' : 'sources'

if (isNew(needed[start])) {
  if (process.argv[2] === 'up') {
    // A daemon runs long and keeps little in memory. By default, V8 lets the young generation grow to tens of megabytes
    // while the program loads, and never shrinks it; and it lets garbage grow to three times the memory in use.
    const { setFlagsFromString } = await take('node:v8')
    setFlagsFromString('--semi-space-growth-factor=1')
    setFlagsFromString('--heap-growing-percent=50')
  }
  // Not in the shared temporary directory, because code in the cache is executed.
  enableCompileCache(
    isClone
      ? join(ownPackage, '..', '..', 'node_modules', '.cache', 'hatchway')
      : join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hatchway'),
  )
  const { main } = await import(start === 'bundle' ? '../dist/main.mjs' : '../src/main.ts')
  await main(process.argv.slice(2))
} else if (isClone) {
  await handOver()
} else {
  refuse('Install a newer one, for example from https://nodejs.org.')
}

function isNew([major, minor]) {
  const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

function refuse(remedy) {
  const version = needed[start].join('.').replace('.0', '')
  console.error(
    `hatchway: this is Node ${process.versions.node}, but Hatchway needs Node ${version} or newer. ${remedy}`,
  )
  process.exitCode = 1
}

/** In a clone somebody may have changed the sources since. For most commands, looking at the command line's is enough. */
async function isBundleCurrent() {
  if (!isClone) return true
  const bundle = statSync(join(ownPackage, 'dist', 'main.mjs'), { throwIfNoEntry: false })
  if (!bundle) return false
  const { newestIn } = await import('../../../scripts/newest.mjs')
  const names = ['up', 'demo'].includes(process.argv[2]) ? ['cli', 'host', 'protocol', 'spool'] : ['cli']
  return bundle.mtimeMs > newestIn(names.map(name => join(ownPackage, '..', name, 'src')))
}

async function handOver() {
  const { spawn } = await take('node:child_process')
  let node
  try {
    node = createRequire(import.meta.url).resolve('node/bin/node')
  } catch {
    refuse('Run `npm ci` in its directory, which installs one, or install it yourself.')
    return
  }
  // Nothing is sent over the channel; when this process is killed, the channel closes and the other one notices.
  const child = spawn(node, process.argv.slice(1), { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', error => {
    console.error(`hatchway: ${node} cannot be started: ${error.message}. Run \`npm ci\` again.`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 1
    if (signal === null) return
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
