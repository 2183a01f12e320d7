import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Layout } from './layout.ts'
import { lastWords } from './programs.ts'

/** Packages that do not come with Hatchway: drivers and libraries of channels, in folders of the data directory. */

/** It could not be installed; the message is for people. */
export class NotInstalled extends Error {
  override name = 'NotInstalled'
}

export interface InstallOptions {
  layout: Layout
  /** where it is to be: a folder that has `node_modules` afterwards */
  place: string
  /** has package.json and lock file */
  from: string
  /** looks at what was installed before it is used */
  check?(folder: string, owner: Account | undefined): Promise<void>
  /** how much is on disk so far */
  progress?: ((bytes: number) => void) | undefined
}

const progressMs = 500

/**
 * Installs exactly what the lock file says, with its hashes. It is made beside its place and renamed when it has been
 * checked, so that whoever looks finds the old one, the new one, or none, and never half of one.
 */
export async function installPackages({
  layout,
  place,
  from,
  check,
  progress,
}: InstallOptions): Promise<void> {
  if (!existsSync(join(from, 'package-lock.json')))
    throw new NotInstalled(`There is no lock file in ${from}. In a clone, run: npm run build`)
  const owner = ownerOf(layout)
  const parent = dirname(place)
  const name = basename(place)
  mkdirSync(parent, { recursive: true, mode: 0o755 })
  giveTo(owner, parent)
  removeRemains(parent, name)
  const staging = mkdtempSync(join(parent, `.${name}-`))
  // A sandbox without mounts of its own reads it as the group's user.
  chmodSync(staging, 0o755)
  try {
    for (const file of ['package.json', 'package-lock.json'])
      copyFileSync(join(from, file), join(staging, file))
    giveTo(owner, staging, ...readdirSync(staging).map(file => join(staging, file)))
    await npmCi(staging, owner, progress)
    await check?.(staging, owner)
    if (existsSync(place)) renameSync(place, join(parent, `.${name}-old`))
    renameSync(staging, place)
  } finally {
    rmSync(staging, { recursive: true, force: true })
    rmSync(join(parent, `.${name}-old`), { recursive: true, force: true })
  }
}

/** Of an installation that was killed an hour ago or longer: another one may be at work now. */
function removeRemains(parent: string, name: string): void {
  for (const entry of readdirSync(parent)) {
    const path = join(parent, entry)
    if (entry.startsWith(`.${name}-`) && Date.now() - statSync(path).mtimeMs > 3_600_000)
      rmSync(path, { recursive: true, force: true })
  }
}

export interface Account {
  uid: number
  gid: number
}

/** Root installs for the host's user, who owns the data directory. */
function ownerOf({ state }: Layout): Account | undefined {
  const data = dirname(state)
  if (process.getuid?.() !== 0 || !existsSync(data)) return undefined
  const { uid, gid } = statSync(data)
  return uid === 0 ? undefined : { uid, gid }
}

function giveTo(owner: Account | undefined, ...paths: readonly string[]): void {
  if (owner) for (const path of paths) chownSync(path, owner.uid, owner.gid)
}

async function npmCi(folder: string, owner: Account | undefined, progress: InstallOptions['progress']) {
  const timer = setInterval(() => progress?.(bytesIn(folder)), progressMs)
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { code, said } = await runAs(owner, folder, ['npm', 'ci', ...flags]).finally(() =>
    clearInterval(timer),
  )
  rmSync(join(folder, '.npm'), { recursive: true, force: true })
  if (code === 0) return
  if (code === 127) throw new NotInstalled('npm is not installed here, and it is needed for this.')
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT/.test(said))
    throw new NotInstalled('npm cannot reach its registry. Check the network, and try again.')
  throw new NotInstalled(`npm could not install it: ${lastWords(said)}`)
}

/** `said`: the end of its standard error. */
export async function runAs(
  owner: Account | undefined,
  folder: string,
  command: readonly string[],
  timeout?: number,
): Promise<{ code: number | null; said: string }> {
  // Another user than ours has another home, whose cache we cannot know.
  const home = owner && { HOME: folder, npm_config_cache: join(folder, '.npm') }
  // Sandboxes read what it writes as yet another user.
  const child = spawn('sh', ['-c', 'umask 022 && exec "$@"', 'sh', ...command], {
    cwd: folder,
    env: { ...process.env, ...home },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...owner,
    ...(timeout === undefined ? {} : { timeout, killSignal: 'SIGKILL' }),
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said = (said + text).slice(-8000)
  })
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.on('error', reject)
  child.on('close', resolve)
  return { code: await promise, said }
}

/** Files come and go while npm is at work. */
function bytesIn(folder: string): number {
  let bytes = 0
  try {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
      if (entry.isFile())
        bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  return bytes
}
