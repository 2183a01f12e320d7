import { renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newestIn } from '../../scripts/newest.mjs'

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
  if (whenMade > newestIn(madeOf.map(name => join(here, name)))) return false
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await buildIfStale()) ? 'The console is built.' : 'The console is up to date.')
}
