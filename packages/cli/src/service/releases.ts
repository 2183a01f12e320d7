import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Failure } from '../failure.ts'
import type { Installation } from './installation.ts'
import type { Programs } from './machine.ts'

/** What npm has to offer, asked through npm itself, so that the person's registry and proxy are used. */
const packageName = 'hatchway'

export async function findRelease(programs: Programs, wanted = 'latest'): Promise<string> {
  const { code, stdout, stderr, failure } = await programs.ask(
    'npm',
    'view',
    `${packageName}@${wanted}`,
    'version',
    '--json',
  )
  if (failure !== undefined) throw new Failure(`npm is needed for this, and does not work: ${failure}.`)
  const found: unknown = code === 0 && stdout.trim() !== '' ? JSON.parse(stdout) : undefined
  // A range such as 1.x has several answers, in order.
  const version: unknown = Array.isArray(found) ? found.at(-1) : found
  if (typeof version === 'string') return version
  const isMissing = code === 0 || /E404|ETARGET/.test(stderr + stdout)
  throw new Failure(
    isMissing
      ? `There is no ${packageName}@${wanted}. See which there are: npm view ${packageName} versions`
      : `npm cannot reach its registry: ${stderr.trim()}`,
  )
}

/** What the changelog of a release says about all versions since the installed one; undefined: it has none. */
export async function changesSince(
  programs: Programs,
  installed: string,
  release: string,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-release-'))
  try {
    const packed = await programs.ask(
      'npm',
      'pack',
      `${packageName}@${release}`,
      '--silent',
      `--pack-destination=${folder}`,
    )
    if (packed.code !== 0) return undefined
    const archive = join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
    const { code, stdout } = await programs.ask('tar', '-xzOf', archive, 'package/CHANGELOG.md')
    return code === 0 ? sectionsBetween(stdout, installed, release) : undefined
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Of a changelog whose newest version comes first, each below a heading such as `## 1.2.0` or `## [1.2.0] - 2026-02-01`. */
export function sectionsBetween(changelog: string, installed: string, release: string): string | undefined {
  const sections = changelog.split(/^(?=## )/m).slice(1)
  const versions = sections.map(text => /\d+\.\d+\.\d+[\w.-]*/.exec(text.split('\n', 1)[0] ?? '')?.[0])
  const from = versions.indexOf(release)
  if (from === -1) return undefined
  const to = versions.indexOf(installed)
  return sections
    .slice(from, to > from ? to : from + 1)
    .join('')
    .trim()
}

export function isNewer(release: string, installed: string): boolean {
  const [wanted = '', wantedCandidate = ''] = parts(release)
  const [own = '', ownCandidate = ''] = parts(installed)
  if (wanted !== own) return order.compare(wanted, own) > 0
  // 1.2.0-rc.1 comes before 1.2.0-rc.2, and both before 1.2.0.
  if (wantedCandidate === '' || ownCandidate === '') return ownCandidate !== '' && wantedCandidate === ''
  return order.compare(wantedCandidate, ownCandidate) > 0
}

/** Numbers inside the text count as numbers: 1.10 comes after 1.9. */
const order = new Intl.Collator('en', { numeric: true })

/** What comes after + is not compared. */
const parts = (version: string) => version.split('+', 1)[0]?.split(/-(.*)/) ?? []

/** Replaces the installed package where it is: in a folder of the person's, or below npm's global prefix. */
export async function installRelease(
  programs: Programs,
  { directory }: Pick<Installation, 'directory'>,
  release: string,
): Promise<void> {
  const above = dirname(dirname(directory))
  const place = basename(above) === 'lib' ? ['--global', `--prefix=${dirname(above)}`] : [`--prefix=${above}`]
  await programs.run('npm', 'install', `${packageName}@${release}`, ...place, '--no-audit', '--no-fund')
}
