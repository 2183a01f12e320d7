import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'
import { takenBuiltins } from '../../scripts/builtins.ts'
import { newestIn } from '../../scripts/newest.mjs'

/**
 * Hatchway in a few files, in `dist`: the command line, the daemon and what plugins import, with every library in it. It
 * starts several times faster than the sources. Run as a script it is made unless it is newer than everything it is made
 * of.
 */
const here = import.meta.dirname
const packages = dirname(here)
const made = join(here, 'dist')
const host = join(packages, 'host', 'src')
const madeOf = [
  import.meta.filename,
  join(packages, '..', 'scripts', 'builtins.ts'),
  ...['protocol', 'spool', 'host', 'cli'].map(name => join(packages, name, 'src')),
]

export const entries = {
  main: join(here, 'src', 'main.ts'),
  index: join(here, 'src', 'index.ts'),
  config: join(here, 'src', 'config.ts'),
  plugin: join(here, 'src', 'plugin.ts'),
  service: join(here, 'src', 'service.ts'),
}

/** longer than one build takes: older files are of the one before */
const oneBuildMs = 60_000

/** A module that is started by its URL, such as a thread, becomes a file of its own. */
const startedModules = (): Plugin => ({
  name: 'started-modules',
  transform: {
    filter: { code: /new URL\('\.[^']*\.ts', import\.meta\.url\)/ },
    handler(code, id) {
      if (!id.startsWith(packages)) return
      const made = code.replace(/new URL\('(\.[^']*\.ts)', import\.meta\.url\)/g, (_, path: string) => {
        const reference = this.emitFile({ type: 'chunk', id: join(dirname(id), path) })
        return `new URL(import.meta.ROLLUP_FILE_URL_${reference})`
      })
      return { code: made, map: null }
    },
  },
})

/** A folder beside a module that reads it, such as `migrations`, is copied: `join(import.meta.dirname, 'migrations')`. */
const foldersBeside = (output: string): Plugin => ({
  name: 'folders-beside',
  transform: {
    filter: { code: /join\(import\.meta\.dirname, '[^)]*'\)/ },
    handler(code, id) {
      if (!id.startsWith(packages)) return
      const made = code.replace(/join\(import\.meta\.dirname, ('[^)]*')\)/g, (whole, names: string) => {
        const folder = join(dirname(id), ...names.split(', ').map(name => name.slice(1, -1)))
        if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return whole
        if (folder.endsWith('..')) return whole
        const name = relative(host, folder).replaceAll('/', '-')
        cpSync(folder, join(output, 'files', name), { recursive: true })
        return `join(import.meta.dirname, 'files', '${name}')`
      })
      return { code: made, map: null }
    },
  },
})

/** Most text on a terminal is plain. What the others need costs each command 50 ms, unless it is loaded when one comes. */
const plainWidths = (): Plugin => ({
  name: 'plain-widths',
  transform: {
    filter: { id: /node_modules\/string-width\/index\.js$/ },
    handler: code => ({
      code: code
        .replace(
          'const segmenter = new Intl.Segmenter();',
          'let made;\nconst segmenter = { segment: text => (made ??= new Intl.Segmenter()).segment(text) };',
        )
        .replace(/const rgiEmojiRegex = (.*);/, 'const rgiEmojiRegex = { test: text => $1.test(text) };'),
      map: null,
    }),
  },
})

/** Our commands are not programs of their own, and what starts those is large. */
const noPrograms = (): Plugin => ({
  name: 'no-programs',
  transform: {
    filter: { id: /node_modules\/commander\/.*\.js$/, code: /\bimport childProcess / },
    handler: code => ({
      code: code.replace(
        /^import childProcess from .*$/m,
        "const childProcess = { spawn: (...given) => process.getBuiltinModule('node:child_process').spawn(...given) };",
      ),
      map: null,
    }),
  },
})

/** Whether it had to be made. */
export async function buildIfStale(): Promise<boolean> {
  const whenMade = statSync(join(made, 'main.mjs'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (whenMade > newestIn(madeOf)) return false
  // Another process may be making it too.
  const draft = join(here, `.dist-${process.pid}`)
  try {
    await bundle(draft, entries, [])
    placeChannelLocks(draft)
    replace(draft, whenMade)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return true
}

/** What `npx hatchway channels add` installs, where the installed package finds it without the sources. */
export function placeChannelLocks(output: string): void {
  const channels = join(host, 'plugins', 'channels')
  for (const kind of readdirSync(channels, { withFileTypes: true }).filter(entry => entry.isDirectory()))
    for (const file of ['package.json', 'package-lock.json']) {
      const from = join(channels, kind.name, file)
      if (!statSync(from, { throwIfNoEntry: false })) continue
      cpSync(from, join(output, 'channels', kind.name, file))
    }
}

/**
 * A daemon may be running from the files that are there, and load some of them only when it needs them: those stay until
 * the next time. Their names change with their content. What others are loaded by comes last.
 */
function replace(draft: string, whenMade: number): void {
  const names = readdirSync(draft, { recursive: true, encoding: 'utf8' }).filter(name =>
    statSync(join(draft, name)).isFile(),
  )
  const isEntry = (name: string) => Object.hasOwn(entries, name.replace('.mjs', ''))
  for (const name of [...names.filter(name => !isEntry(name)), ...names.filter(isEntry)]) {
    mkdirSync(dirname(join(made, name)), { recursive: true })
    renameSync(join(draft, name), join(made, name))
  }
  for (const name of readdirSync(made)) {
    const { mtimeMs } = statSync(join(made, name))
    if (!names.some(kept => kept.startsWith(name)) && mtimeMs < whenMade - oneBuildMs)
      rmSync(join(made, name), { recursive: true })
  }
}

/** JavaScript with source maps: one file for each entry, and parts that they share. */
export async function bundle(
  output: string,
  input: Readonly<Record<string, string>>,
  external: readonly string[],
): Promise<void> {
  const build = await rolldown({
    input,
    external: [...external],
    platform: 'node',
    // The examples import what is published, which is made here.
    resolve: { alias: { 'hatchway/service': join(here, 'src', 'service.ts') } },
    logLevel: 'warn',
    transform: { target: 'node22.13' },
    plugins: [startedModules(), foldersBeside(output), plainWidths(), noPrograms(), takenBuiltins()],
  })
  try {
    await build.write({
      dir: output,
      format: 'esm',
      sourcemap: true,
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
      minify: { compress: true, mangle: false, codegen: false },
    })
  } finally {
    await build.close()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await buildIfStale()) ? 'Hatchway is bundled.' : 'The bundle is up to date.')
}
