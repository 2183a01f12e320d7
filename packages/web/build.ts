import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The console as the host serves it, in `dist`. Run as a script it is made unless it is there and newer than everything
 * it is made of.
 */
const here = import.meta.dirname
const made = join(here, 'dist')
const madeOf = ['build.ts', 'index.html', 'package.json', 'src', 'static', 'vite.config.ts']

/** Whether it had to be made. */
export async function buildIfStale(): Promise<boolean> {
  const whenMade = statSync(join(made, 'index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (whenMade > Math.max(...madeOf.map(name => newestIn(join(here, name))))) return false
  // Only whoever makes it needs the bundler.
  const { build } = await import('vite')
  // Beside it and renamed when whole: a daemon may be serving it, another process may be making it.
  const draft = join(here, `.dist-${process.pid}`)
  const old = `${draft}-old`
  try {
    await build({
      configFile: join(here, 'vite.config.ts'),
      logLevel: 'warn',
      build: { outDir: draft, emptyOutDir: true },
    })
    if (statSync(made, { throwIfNoEntry: false })) renameSync(made, old)
    renameSync(draft, made)
  } finally {
    for (const path of [draft, old]) rmSync(path, { recursive: true, force: true })
  }
  return true
}

function newestIn(path: string): number {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  const inside = readdirSync(path).filter(name => !name.includes('.test.'))
  return Math.max(stat.mtimeMs, ...inside.map(name => newestIn(join(path, name))))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await buildIfStale()) ? 'The console is built.' : 'The console is up to date.')
}
