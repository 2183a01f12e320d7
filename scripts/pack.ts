/**
 * Makes the packages that people install, as they would be published:
 *
 *   npm run pack -- DIRECTORY    one tarball for each, in this directory
 *
 * The workspaces run from their sources. What is published is JavaScript with declarations and source maps, so each
 * package is put together in a folder of its own first, with a package.json that says so.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleIfStale } from '../packages/agent/bundle.ts'
import { bundle, placeChannelLocks, entries as programEntries } from '../packages/cli/build.ts'
import { buildIfStale as buildConsole } from '../packages/web/build.ts'
import { createDeclarations } from './declarations.ts'
import { unbundled, writeLicences } from './licences.ts'

const root = join(import.meta.dirname, '..')
const packages = join(root, 'packages')
const engines = { node: '>=22.13.0' }

interface Manifest {
  name: string
  version: string
  description: string
  license: string
  type: string
  dependencies?: Record<string, string>
  [field: string]: unknown
}

interface Part {
  folder: string
  /** what can be imported, by its name in `exports`, and the source of each */
  entries: Readonly<Record<string, string>>
  /** writes the JavaScript, one file for each entry */
  build(output: string, entries: Readonly<Record<string, string>>): Promise<void>
  /** what is not in the JavaScript, and is needed to run it or for its types */
  dependencies: readonly string[]
  bin?: Record<string, string>
  /** whose licences come along, where libraries are in the JavaScript */
  licences?: 'agent' | 'cli'
  /** how to run it in a container */
  units?: readonly string[]
}

const ofHost: Record<string, string> = JSON.parse(
  readFileSync(join(packages, 'host', 'package.json'), 'utf8'),
).dependencies
const source = (...path: string[]) => join(packages, ...path)

const parts: readonly Part[] = [
  {
    folder: 'spool',
    entries: { index: source('spool', 'src', 'index.ts') },
    build: (output, entries) => bundle(output, entries, []),
    dependencies: [],
  },
  {
    folder: 'protocol',
    entries: {
      index: source('protocol', 'src', 'index.ts'),
      names: source('protocol', 'src', 'names.ts'),
      uuid: source('protocol', 'src', 'uuid.ts'),
      shell: source('protocol', 'src', 'shell', 'index.ts'),
    },
    build: (output, entries) => bundle(output, entries, ['zod']),
    dependencies: ['zod'],
  },
  {
    folder: 'agent',
    entries: { index: source('agent', 'src', 'index.ts') },
    async build(output, entries) {
      await bundle(output, entries, ['zod'])
      cpSync(source('agent', 'dist'), output, { recursive: true })
    },
    dependencies: ['zod'],
    bin: { 'hatchway-agent': 'bin/hatchway-agent.mjs' },
    licences: 'agent',
  },
  {
    folder: 'cli',
    entries: programEntries,
    async build(output, entries) {
      await bundle(output, entries, [])
      placeChannelLocks(output)
      cpSync(source('agent', 'dist'), join(output, 'agent'), { recursive: true })
      cpSync(source('web', 'dist'), join(output, 'console'), { recursive: true })
    },
    // All of them are in the JavaScript as well; here they are for the types of plugins.
    dependencies: unbundled,
    bin: { hatchway: 'bin/hatchway.mjs' },
    licences: 'cli',
    units: ['Dockerfile', 'docker-compose.yml'],
  },
]

/** The files of the tarballs. */
export async function packAll(output: string): Promise<string[]> {
  await Promise.all([bundleIfStale(), buildConsole()])
  mkdirSync(output, { recursive: true })
  const stage = mkdtempSync(join(tmpdir(), 'hatchway-pack-'))
  try {
    const made: string[] = []
    const declare = createDeclarations(parts.flatMap(part => Object.values(importable(part))))
    for (const part of parts) {
      const folder = join(stage, part.folder)
      await putTogether(part, folder, declare)
      const said = execFileSync('npm', ['pack', '--json', '--pack-destination', resolve(output)], {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      made.push(join(output, JSON.parse(said)[0].filename))
    }
    return made
  } finally {
    rmSync(stage, { recursive: true })
  }
}

/** `main` is what the program starts, and nobody else. */
const importable = ({ entries }: Part) =>
  Object.fromEntries(Object.entries(entries).filter(([name]) => name !== 'main'))

async function putTogether(
  part: Part,
  folder: string,
  declare: ReturnType<typeof createDeclarations>,
): Promise<void> {
  const own = source(part.folder)
  const dist = join(folder, 'dist')
  mkdirSync(dist, { recursive: true })
  await part.build(dist, part.entries)
  const types = declare(importable(part), join(dist, 'types'))
  const manifest: Manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  const { name, version, description, license, type, repository, homepage, dependencies = {} } = manifest
  const published = {
    ...{ name, version, description, license, repository, homepage, type, engines },
    ...(part.bin ? { bin: part.bin } : {}),
    exports: {
      ...Object.fromEntries(
        Object.entries(types).map(([entry, file]) => [
          entry === 'index' ? '.' : `./${entry}`,
          { types: `./dist/types/${file}`, default: `./dist/${entry}.mjs` },
        ]),
      ),
      './package.json': './package.json',
    },
    files: ['bin', 'dist', 'units', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json'],
    dependencies: Object.fromEntries(part.dependencies.map(one => [one, dependencies[one] ?? ofHost[one]])),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  cpSync(join(own, 'README.md'), join(folder, 'README.md'))
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  cpSync(join(packages, 'cli', 'CHANGELOG.md'), join(folder, 'CHANGELOG.md'))
  for (const name of part.units ?? []) cpSync(join(root, 'units', name), join(folder, 'units', name))
  if (part.licences) await writeLicences(part.licences, folder)
  if (readdirSync(own).includes('bin')) cpSync(join(own, 'bin'), join(folder, 'bin'), { recursive: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [output] = process.argv.slice(2)
  if (output === undefined) {
    console.error('usage: npm run pack -- DIRECTORY')
    process.exitCode = 64
  } else {
    for (const file of await packAll(output)) console.log(basename(file))
  }
}
