import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InputOptions, OutputOptions } from 'rolldown'
import { takenBuiltins } from '../../scripts/builtins.ts'
import { newestIn } from '../../scripts/newest.mjs'

/**
 * The agent's side as one file that needs only Node: what a sandbox gets to see of this project. Beside it, in `bin`,
 * the shells that ask first, whose program is small, as it starts with every command; in `commands`, `hatchway` for agents
 * without MCP; and `model-port.mjs`, which runs beside other projects' containers. Run as a script it makes them unless they are there and newer than everything they
 * are made of.
 */
export const bundlePath = join(import.meta.dirname, 'dist', 'agent.mjs')

const packages = dirname(import.meta.dirname)
const shellScript = join(import.meta.dirname, 'image', 'shell.sh')
const commandScript = join(import.meta.dirname, 'image', 'hatchway.sh')
const recipe = join(import.meta.dirname, 'image', 'Dockerfile')
const madeOf = [
  join(import.meta.dirname, 'bundle.ts'),
  join(import.meta.dirname, 'package.json'),
  join(packages, '..', 'scripts', 'builtins.ts'),
  shellScript,
  commandScript,
  recipe,
  ...['agent', 'protocol', 'spool'].map(name => join(packages, name, 'src')),
]

/** What `npx hatchway agents add claude` installs, where the host finds it without the sources. */
const driverFiles = ['package.json', 'package-lock.json']
const claudeLock = join(import.meta.dirname, 'dist', 'drivers', 'claude', 'package-lock.json')

/** An image is built in the folder that has everything it takes. */
const recipePath = join(import.meta.dirname, 'dist', 'Dockerfile')

function placeDriverLocks(): void {
  const from = join(import.meta.dirname, 'src', 'drivers', 'claude')
  for (const name of driverFiles)
    place(join(dirname(claudeLock), name), draft => copyFileSync(join(from, name), draft))
}

/** Whether it had to be made. */
export async function bundleIfStale(): Promise<boolean> {
  const bin = join(dirname(bundlePath), 'bin')
  const modelPort = join(dirname(bundlePath), 'model-port.mjs')
  const shells = ['sh', 'bash', 'check.mjs'].map(name => join(bin, name))
  const command = join(dirname(bundlePath), 'commands', 'hatchway')
  const made = [bundlePath, modelPort, claudeLock, recipePath, command, ...shells]
  const oldest = Math.min(...made.map(path => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0))
  if (oldest > newestIn(madeOf)) return false
  await bundleShells(bin)
  placeProgram(command, commandScript)
  placeDriverLocks()
  place(recipePath, draft => copyFileSync(recipe, draft))
  for (const [input, path] of [
    [join('src', 'model-port', 'forward.process.ts'), modelPort],
    [join('src', 'main.ts'), bundlePath],
  ] as const) {
    // People who install the package start it by its name.
    const output = { codeSplitting: false, banner: '#!/usr/bin/env node', entryFileNames: basename(path) }
    await bundle(input, dirname(path), output)
  }
  return true
}

/** `sh` and `bash`, and what they ask. */
export async function bundleShells(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true })
  const input = join('src', 'shell', 'check.process.ts')
  await bundle(input, directory, { entryFileNames: 'check.mjs', chunkFileNames: '[name].mjs' })
  for (const name of ['sh', 'bash']) {
    placeProgram(join(directory, name), shellScript)
  }
}

const placeProgram = (path: string, from: string): void =>
  place(path, draft => {
    copyFileSync(from, draft)
    chmodSync(draft, 0o755)
  })

/** Writes the JavaScript and its source maps. */
async function bundle(input: string, directory: string, output: OutputOptions): Promise<void> {
  // Only whoever makes the bundle needs the bundler.
  const { rolldown } = await import('rolldown')
  const options: InputOptions = {
    input: join(import.meta.dirname, input),
    platform: 'node',
    // Its program is larger than all the rest; the host mounts it where it is wanted.
    external: ['@anthropic-ai/claude-agent-sdk'],
    treeshake: { moduleSideEffects: false },
    logLevel: 'warn',
    // The host's Node runs it, which may be as old as that.
    transform: { target: 'node22.13' },
    plugins: [takenBuiltins()],
  }
  const build = await rolldown(options)
  try {
    const made = await build.generate({ format: 'esm', minify: true, sourcemap: true, ...output })
    // What is loaded by another part is there before it.
    for (const part of made.output.toReversed())
      place(join(directory, part.fileName), draft =>
        writeFileSync(draft, part.type === 'chunk' ? part.code : part.source),
      )
  } finally {
    await build.close()
  }
}

/** Renamed when whole: another process may be starting an agent, or making the same file. */
function place(path: string, write: (draft: string) => void): void {
  mkdirSync(dirname(path), { recursive: true })
  const draft = join(dirname(path), `.${process.pid}-${path.slice(dirname(path).length + 1)}`)
  try {
    write(draft)
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await bundleIfStale()) ? 'The agent is bundled.' : 'The agent’s bundle is up to date.')
}
