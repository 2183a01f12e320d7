/**
 * What is bundled into the published packages, and under which licences. Whoever passes a bundle on has to pass these on
 * too, so both are written as files that go into the package: THIRD-PARTY-LICENSES.txt for people, and a bill of
 * materials, sbom.cdx.json (CycloneDX), for scanners.
 */
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { entries } from '../packages/cli/build.ts'

const root = join(import.meta.dirname, '..')
const source = (...path: string[]) => join(root, 'packages', ...path)

/** They ask for their text and copyright line in every copy, or for nothing; none asks anything of the code around them. */
const permissive = new Set([
  ...['MIT', 'MIT-0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0', 'BlueOak-1.0.0'],
  ...['Python-2.0', 'Zlib', 'Unlicense', 'CC0-1.0'],
])
/** They ask in addition to say where the source of their own files is (docs/decisions/019-licences.md). */
const perFile = new Set(['MPL-2.0'])

const agentPrograms = [
  source('agent', 'src', 'main.ts'),
  source('agent', 'src', 'model-port', 'forward.process.ts'),
  source('agent', 'src', 'shell', 'check.process.ts'),
]
const programs = {
  agent: [source('agent', 'src', 'index.ts'), ...agentPrograms],
  cli: [...Object.values(entries), source('web', 'src', 'main.tsx'), ...agentPrograms],
}

/** In the JavaScript of `hatchway` as well; they are installed with it for the types of plugins. */
export const unbundled = ['hono', 'pino', 'zod']

interface Manifest {
  name: string
  version: string
  license?: string
  repository?: string | { url: string }
}

interface Bundled {
  name: string
  version: string | undefined
  licence: string
  text: string
  /** where its source is */
  source: string
  integrity?: string | undefined
}

/** Writes both files into `output`. Throws if something is bundled that may not be. */
export async function writeLicences(packageFolder: 'cli' | 'agent', output: string): Promise<void> {
  const bundled = await findBundled(programs[packageFolder])
  for (const { name, licence } of bundled) checkLicence(name, licence)
  if (packageFolder === 'cli') checkInstalled()
  const own: Manifest = readJson(source(packageFolder, 'package.json'))
  mkdirSync(output, { recursive: true })
  writeFileSync(join(output, 'THIRD-PARTY-LICENSES.txt'), licenceTexts(own, bundled))
  writeFileSync(join(output, 'sbom.cdx.json'), `${JSON.stringify(billOfMaterials(own, bundled), null, 2)}\n`)
}

/**
 * What people install beside the bundle: with `hatchway`, and with each channel and driver that they add. The packages that were
 * checked.
 */
export function checkInstalled(): string[] {
  const optional = [
    ...globSync(source('host', 'src', 'plugins', 'channels', '*', 'package-lock.json')),
    ...globSync(source('agent', 'src', 'drivers', '*', 'package-lock.json')),
  ]
  return [
    ...checkLock(lock, unbundled),
    ...optional.flatMap(file => {
      const own: Lock = readJson(file)
      const { license = '' }: Manifest = readJson(join(dirname(file), 'package.json'))
      return checkLock(own, Object.keys(own.packages[''].dependencies ?? {}), license)
    }),
  ]
}

interface Lock {
  packages: Record<string, Locked> & { '': Locked }
}

interface Locked {
  license?: string
  integrity?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

/** Packages that name their licence in an old form, or only in a file beside, which npm does not put into the lock file. */
const saidElsewhere: ReadonlyMap<string, string> = new Map([
  ['middleware-handler', 'MIT'],
  ['sasl-anonymous', 'MIT'],
  ['sasl-plain', 'MIT'],
  ['saslmechanisms', 'MIT'],
])

/** Packages under their publisher's own terms, for which SPDX has no name but one that we make up. */
const ownTerms: readonly { packages: RegExp; licence: string }[] = [
  { packages: /^@anthropic-ai\/claude-agent-sdk(-|$)/, licence: 'LicenseRef-Anthropic' },
]

function licenceOf(name: string, { license }: Locked): string {
  // npm's way to say that only a file has the terms.
  const found = license?.startsWith('SEE LICENSE IN ') && ownTerms.find(({ packages }) => packages.test(name))
  return (found ? found.licence : license) ?? saidElsewhere.get(name) ?? 'no licence'
}

/** These packages and what they need. `said`: the licence of the optional package that installs them, which names those that are not permissive. */
export function checkLock({ packages }: Lock, names: readonly string[], said = 'MIT'): string[] {
  const seen = new Set<string>()
  const check = (name: string, above: string) => {
    // As Node looks for it: in the folder of whoever needs it, and in each folder above.
    let folder = above
    while (folder !== '' && !packages[`${folder}/node_modules/${name}`])
      folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))
    const path = `${folder}${folder && '/'}node_modules/${name}`
    const found = packages[path]
    if (!found || seen.has(path)) return
    seen.add(path)
    checkLicence(name, licenceOf(name, found), said)
    const needed = { ...found.dependencies, ...found.optionalDependencies, ...found.peerDependencies }
    for (const other of Object.keys(needed)) check(other, path)
  }
  for (const name of names) check(name, '')
  return [...seen].map(path => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
}

export function checkLicence(name: string, licence: string, said = 'MIT'): void {
  if (isAllowed(licence, new Set(said.split(' AND ')))) return
  throw new Error(
    `${name} is licensed under ${licence}, which is not known to allow bundling into a program under MIT. Use another library, or move it into an optional package, such as a channel or a driver, whose own "license" names it: MIT AND ${licence}.`,
  )
}

/** Of an SPDX expression: one side of OR is enough, AND needs both. */
function isAllowed(licence: string, said: ReadonlySet<string>): boolean {
  const plain = licence.replace(/^\((.*)\)$/, '$1')
  if (/[()]/.test(plain)) return false
  return plain
    .split(' OR ')
    .some(choice =>
      choice.split(' AND ').every(one => permissive.has(one) || perFile.has(one) || said.has(one)),
    )
}

/** Every package of which at least one module is in the bundle, and those that such a module carries inside itself. */
async function findBundled(input: readonly string[]): Promise<Bundled[]> {
  const found = new Map<string, Bundled>()
  const add = (one: Bundled) => found.set(`${one.name}@${one.version}`, one)
  for (const module of await modulesOf(input)) {
    const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module)?.[0]
    if (folder === undefined) continue
    add(installed(folder))
    for (const one of carriedBy(module)) add(one)
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function modulesOf(input: readonly string[]): Promise<string[]> {
  const build = await rolldown({
    input: [...input],
    cwd: root,
    platform: 'node',
    logLevel: 'silent',
    moduleTypes: { '.css': 'empty' },
    external: ['@anthropic-ai/claude-agent-sdk'],
    plugins: [startedModules],
  })
  try {
    const { output } = await build.generate({ format: 'esm' })
    return output.flatMap(part => (part.type === 'chunk' ? part.moduleIds : []))
  } finally {
    await build.close()
  }
}

/** Threads are started by their URL. */
const startedModules: Plugin = {
  name: 'started-modules',
  transform: {
    filter: { id: /\/packages\/[^/]+\/src\//, code: /new URL\('\.[^']*\.ts', import\.meta\.url\)/ },
    handler(code, id) {
      for (const [, path = ''] of code.matchAll(/new URL\('(\.[^']*\.ts)', import\.meta\.url\)/g))
        this.emitFile({ type: 'chunk', id: join(dirname(id), path) })
      return null
    },
  },
}

const lock: Lock = readJson(join(root, 'package-lock.json'))

function installed(folder: string): Bundled {
  const { name, version, license, repository }: Manifest = readJson(join(folder, 'package.json'))
  const files = readdirSync(folder).filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
  const texts = files.map(file => readFileSync(join(folder, file), 'utf8').trim())
  const kept = texts.length > 0 ? undefined : keptText(name)
  const address = typeof repository === 'string' ? repository : repository?.url
  return {
    name,
    version,
    licence: license ?? 'no licence',
    text: kept?.text ?? texts.join('\n\n'),
    source: address?.replace(/^git\+|\.git$/g, '') ?? onNpm(name, version),
    integrity: lock.packages[relative(root, folder)]?.integrity,
  }
}

/** Some packages are bundles themselves. Their source maps say of what, but they bring no licence texts of it. */
function carriedBy(module: string): Bundled[] {
  if (!existsSync(`${module}.map`)) return []
  const { sources }: { sources: string[] } = readJson(`${module}.map`)
  return sources.flatMap(path => {
    const inside =
      /node_modules\/(?:\.pnpm\/[^/]*?@(\d[^/_(]*)[^/]*\/node_modules\/)?((?:@[^/]+\/)?[^/.][^/]*)\//.exec(
        path,
      )
    if (inside === null) return []
    const [, version, name = ''] = inside
    return [{ name, version, ...keptText(name), source: onNpm(name, version) }]
  })
}

const onNpm = (name: string, version = '') => `the npm package ${name} ${version}`.trim()

/** Texts that packages leave out. The first line of each file has the licence and the packages. */
function keptText(name: string): { licence: string; text: string } {
  for (const file of globSync(join(import.meta.dirname, 'licences', '*.txt'))) {
    const [, licence = '', names = '', text = ''] =
      /^(\S+): ([^\n]*)\n\n(.*)$/s.exec(readFileSync(file, 'utf8')) ?? []
    if (names.split(', ').includes(name)) return { licence, text: text.trim() }
  }
  throw new Error(`${name} comes without the text of its licence. Put it into scripts/licences.`)
}

function licenceTexts(own: Manifest, bundled: readonly Bundled[]): string {
  const parts = bundled.map(({ name, version, licence, text, source }) => {
    const offer = perFile.has(licence)
      ? `\nIts files stay under this licence. They are contained unchanged; their source is free to get there, or with: npm pack ${name}@${version}\n`
      : ''
    return `${name} ${version ?? ''}\nLicence: ${licence}\nSource: ${source}\n${offer}\n${text}\n`
  })
  const rule = `\n${'-'.repeat(80)}\n\n`
  const title = `${own.name} ${own.version} contains ${bundled.length} packages of others, each under its own licence.\n`
  return [title, ...parts].join(rule)
}

function billOfMaterials(own: Manifest, bundled: readonly Bundled[]): object {
  const component = ({ name, version }: Pick<Bundled, 'name' | 'version'>, licence: string) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}${version === undefined ? '' : `@${version}`}`
    const licences = / (OR|AND) /.test(licence) ? { expression: licence } : { license: { id: licence } }
    return {
      'bom-ref': purl,
      name,
      ...(version === undefined ? {} : { version }),
      purl,
      licenses: [licences],
    }
  }
  const top = { type: 'application', ...component(own, own.license ?? 'MIT') }
  const components = bundled.map(({ integrity, ...one }) => ({
    type: 'library',
    ...component(one, one.licence),
    ...(integrity?.startsWith('sha512-')
      ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice(7), 'base64').toString('hex') }] }
      : {}),
  }))
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: top },
    components,
    dependencies: [{ ref: top['bom-ref'], dependsOn: components.map(one => one['bom-ref']) }],
  }
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8'))
}
