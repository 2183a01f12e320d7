#!/usr/bin/env node
// Plain JavaScript for any Node from 20 on: it finds the Node that came with `npm ci` and hands over to it.
import { spawn } from 'node:child_process'
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import v8 from 'node:v8'

const needed = 24

if (Number.parseInt(process.versions.node, 10) >= needed) {
  if (process.argv[2] === 'up') {
    // A daemon lives long and keeps little. Left alone, the engine lets the space for young objects grow to tens of
    // megabytes while the program is loaded, and never gives it back; and it lets garbage grow to three times of what
    // is in use.
    v8.setFlagsFromString('--semi-space-growth-factor=1')
    v8.setFlagsFromString('--heap-growing-percent=50')
  }
  // Not in the shared temporary directory: what lies in the cache is run.
  module.enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/hatchway', import.meta.url)))
  const { main } = await import('../src/main.ts')
  await main(process.argv.slice(2))
} else {
  handOver()
}

function handOver() {
  let node
  try {
    node = module.createRequire(import.meta.url).resolve('node/bin/node')
  } catch {
    console.error(
      `hatchway: this is Node ${process.versions.node}, and Hatchway runs on Node ${needed}. ` +
        `Run \`npm ci\` in its directory, which brings it, or install Node ${needed}.`,
    )
    process.exitCode = 1
    return
  }
  // The channel tells the other process when this one is killed; nothing is sent over it.
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
