/**
 * Releases all packages together:  npm run release -- [--dry-run] [--yes]
 *
 * 1. The changesets say the next version. Versions and changelog are committed in a worktree of their own, so that a
 *    failure leaves nothing behind; then the branch moves to that commit, and it is tagged.
 * 2. The packages are made, and those that npm does not have yet are published.
 *
 * It can be repeated after any failure: without changesets, the version that is there is released if npm lacks it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { sectionsBetween } from '../packages/cli/src/service/releases.ts'

const root = process.cwd()
const changeset = join(import.meta.dirname, '..', 'packages', 'node_modules', '.bin', 'changeset')
const branch = 'main'

/** CI can prove to npm of which commit a package was made; npm wants to know of which repository. */
const { repository } = JSON.parse(readFileSync(join(root, 'packages', 'cli', 'package.json'), 'utf8'))
const canProve = ['ACTIONS_ID_TOKEN_REQUEST_URL', 'SIGSTORE_ID_TOKEN'].some(name => process.env[name])
const provenance = canProve && repository !== undefined

/** What a package must not be published without. */
const always = ['LICENSE', 'README.md']
const bundles = [...always, 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json']
const neededFiles: Record<string, string[]> = {
  hatchway: [...bundles, 'CHANGELOG.md'],
  '@hatchway/agent': bundles,
}

class Failure extends Error {}

interface Release {
  version: string
  notes: string
  /** the commit that makes it, if changesets ask for a new version */
  commit?: string
}

interface Tarball {
  file: string
  name: string
  contents: string[]
  size: number
  unpackedSize: number
}

const { values: options } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false }, yes: { type: 'boolean', default: false } },
})
const folder = mkdtempSync(join(tmpdir(), 'hatchway-release-'))
try {
  await main()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  console.error(`release: ${error.message}`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}

async function main(): Promise<void> {
  const isClean = git('status', '--porcelain') === ''
  if (!isClean && !options['dry-run']) throw new Failure('There are changes that are not committed.')
  const release = hasChangesets() ? nextRelease() : currentRelease()
  let tarballs = pack('before')
  const missing = tarballs.map(({ name }) => name).filter(name => !isPublished(name, release.version))
  if (missing.length === 0) {
    console.log(`Nothing to release: npm has ${release.version}, and no changeset waits.`)
    return
  }
  const obstacles = findObstacles(release, tarballs)
  if (!isClean) obstacles.unshift('There are changes that are not committed.')
  show(release, tarballs, missing, obstacles)
  if (options['dry-run']) return console.log('\nNothing was changed or published.')
  if (obstacles.length > 0) throw new Failure('It is not ready.')
  await confirm(release.version)

  if (release.commit !== undefined) {
    git('merge', '--ff-only', '--quiet', release.commit)
    tarballs = pack('after')
  }
  const tag = `v${release.version}`
  // Headings begin with #, which git would take for comments.
  if (!commitOf(tag)) git('tag', '--annotate', '--cleanup=verbatim', '--message', release.notes, tag)
  for (const { name, file } of tarballs) if (missing.includes(name)) publish(name, file)
  console.log(`\n${release.version} is released. Now: git push --follow-tags`)
}

function hasChangesets(): boolean {
  return git('ls-tree', '--name-only', 'HEAD', '.changeset/').includes('.md')
}

/** What changesets make of the last commit. It has no name until the branch moves to it. */
function nextRelease(): Release {
  const tree = join(folder, 'tree')
  git('worktree', 'add', '--quiet', '--detach', tree, 'HEAD')
  try {
    run(process.execPath, [changeset, 'version'], tree)
    // Changesets writes a changelog for each package; the one of the program is enough.
    run('git', ['clean', '--force', '--quiet', 'packages'], tree)
    const { version, notes } = currentRelease(tree)
    run('npm', ['pkg', 'set', `version=${version}`], tree)
    run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--prefer-offline', '--no-audit'], tree)
    run('git', ['commit', '--all', '--quiet', '--message', `Release ${version}`], tree)
    return { version, notes, commit: run('git', ['rev-parse', 'HEAD'], tree) }
  } finally {
    git('worktree', 'remove', '--force', tree)
  }
}

function currentRelease(tree = root): Release {
  const { version } = JSON.parse(readFileSync(join(tree, 'packages', 'cli', 'package.json'), 'utf8'))
  const changelog = readFileSync(join(tree, 'packages', 'cli', 'CHANGELOG.md'), 'utf8')
  const notes = sectionsBetween(changelog, '', version)
  if (notes === undefined) throw new Failure(`packages/cli/CHANGELOG.md has no section for ${version}.`)
  return { version, notes }
}

/** In the order in which they are made: a package comes after those it depends on. */
function pack(name: string): Tarball[] {
  const output = join(folder, name)
  const lines = run(process.execPath, ['scripts/pack.ts', output]).split('\n')
  return lines
    .filter(line => line.endsWith('.tgz'))
    .map(each => {
      const file = join(output, each)
      const [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', file]))
      return { ...packed, file, contents: packed.files.map(({ path }: { path: string }) => path) }
    })
}

function isPublished(name: string, version: string): boolean {
  try {
    return run('npm', ['view', `${name}@${version}`, 'version']) !== ''
  } catch (error) {
    // Without a network, a dry run can still show the rest.
    const isMissing = error instanceof Failure && error.message.includes('E404')
    if (isMissing || options['dry-run']) return false
    throw error
  }
}

function findObstacles({ version, commit }: Release, tarballs: readonly Tarball[]): string[] {
  const obstacles: string[] = []
  const { version: current } = currentRelease()
  const tagged = commitOf(`v${current}`)
  const isRepeated = commit === undefined && tagged === commitOf('HEAD')
  if (!isRepeated && git('branch', '--show-current') !== branch)
    obstacles.push(`Releases are made on the branch ${branch}.`)
  if (!isRepeated && tagged !== '' && tarballs.some(({ name }) => !isPublished(name, current)))
    obstacles.push(`v${current} is only partly published. Finish it first: git checkout v${current}`)
  if (commit !== undefined && commitOf(`v${version}`)) obstacles.push(`There already is a tag v${version}.`)
  for (const { name, contents } of tarballs) {
    const absent = (neededFiles[name] ?? always).filter(file => !contents.includes(file))
    if (absent.length > 0) obstacles.push(`${name} lacks ${absent.join(', ')}.`)
    // Such as the Claude SDK, which nobody but its maker may publish.
    const foreign = contents.find(path => path.includes('node_modules/'))
    if (foreign !== undefined) obstacles.push(`${name} contains installed packages: ${foreign}`)
  }
  try {
    if (!provenance) run('npm', ['whoami'])
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    obstacles.push('npm does not know who you are, or is out of reach. Run: npm login')
  }
  return obstacles
}

function show(
  { version, notes }: Release,
  tarballs: Tarball[],
  missing: string[],
  obstacles: string[],
): void {
  console.log(`Version ${version}\n\n${notes}\n`)
  const kilobytes = (bytes: number) => `${Math.ceil(bytes / 1000)} kB`
  for (const { name, contents, size, unpackedSize } of tarballs) {
    const sizes = `${kilobytes(size)} packed, ${kilobytes(unpackedSize)} unpacked`
    const state = missing.includes(name) ? '' : ' (already published)'
    console.log(`${name} ${version}: ${contents.length} files, ${sizes}${state}`)
  }
  if (obstacles.length > 0) console.log(['\nNot ready:', ...obstacles].join('\n  '))
}

async function confirm(version: string): Promise<void> {
  if (options.yes) return
  if (!process.stdin.isTTY) throw new Failure('To release without being asked, add --yes.')
  const questions = createInterface(process.stdin, process.stdout)
  const answer = await questions.question(`\nRelease ${version}, and publish these packages? (yes/no) `)
  questions.close()
  if (answer.trim() !== 'yes') throw new Failure('Nothing was changed.')
}

function publish(name: string, file: string): void {
  const flags = ['--access=public', ...(provenance ? ['--provenance'] : [])]
  // npm may ask for a one-time password.
  const { status } = spawnSync('npm', ['publish', file, ...flags], { stdio: 'inherit' })
  if (status !== 0) throw new Failure(`${name} is not published. Repeat this to publish what is missing.`)
}

/** Empty if there is none. */
function commitOf(name: string): string {
  return git('rev-list', '--max-count=1', '--ignore-missing', name)
}

function git(...args: string[]): string {
  return run('git', args)
}

function run(command: string, args: string[], cwd = root): string {
  const settings = { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 } as const
  const { status, stdout, stderr, error } = spawnSync(command, args, settings)
  if (status !== 0) throw new Failure(`${command} ${args.join(' ')} failed: ${error?.message ?? stderr}`)
  return stdout.trim()
}
