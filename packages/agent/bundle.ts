import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The agent's side as one file that needs only Node: what a sandbox gets to see of this project. Run as a script it
 * makes the file unless it is there and newer than everything it is made of.
 */
export const bundlePath = join(import.meta.dirname, 'dist', 'agent.mjs')

const packages = dirname(import.meta.dirname)
const madeOf = [
  join(import.meta.dirname, 'bundle.ts'),
  join(import.meta.dirname, 'package.json'),
  ...['agent', 'protocol', 'spool'].map(name => join(packages, name, 'src')),
]

/** Whether it had to be made. */
export async function bundleIfStale(): Promise<boolean> {
  const made = statSync(bundlePath, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (made > Math.max(...madeOf.map(newestIn))) return false
  await bundle()
  return true
}

async function bundle(): Promise<void> {
  // Only whoever makes the bundle needs the bundler.
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: join(import.meta.dirname, 'src', 'main.ts'),
    platform: 'node',
    // Its program is larger than all the rest; the host mounts it where it is wanted.
    external: ['@anthropic-ai/claude-agent-sdk'],
    treeshake: { moduleSideEffects: false },
    logLevel: 'warn',
  })
  const directory = dirname(bundlePath)
  mkdirSync(directory, { recursive: true })
  // Renamed when whole: another process may be starting an agent, or making the same file.
  const draft = join(directory, `.agent-${process.pid}.mjs`)
  try {
    await build.write({ file: draft, format: 'esm', codeSplitting: false, minify: true })
    renameSync(draft, bundlePath)
  } finally {
    rmSync(draft, { force: true })
    await build.close()
  }
}

function newestIn(path: string): number {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  const inside = readdirSync(path).filter(name => !name.endsWith('.test.ts'))
  return Math.max(stat.mtimeMs, ...inside.map(name => newestIn(join(path, name))))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await bundleIfStale()) ? 'The agent is bundled.' : 'The agent’s bundle is up to date.')
}
