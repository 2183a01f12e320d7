import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, sep } from 'node:path'
import type { Mount } from './types.ts'

/**
 * Directories beyond a group's own that the operator lets into its sandbox. Two hands are needed: the configuration
 * asks for a mount, and a list outside of everything an agent can write allows it. Paths are compared as the kernel
 * resolves them, and secrets are never mounted, whatever the list says.
 */
export interface MountRequest {
  from: string
  /** a name, or a path below /workspace/extra */
  to: string
  writable: boolean
}

export interface MountRules {
  /** the list, one directory a line; undefined: nothing is allowed */
  allowedFile: string | undefined
  /** the project's own directory; the list must not lie in it */
  project: string
  /** our data directory: never mounted through here, not even a part or a parent of it */
  data: string
}

export type CheckedMounts =
  | { ok: true; mounts: readonly Mount[] }
  | { ok: false; problems: readonly string[] }

const extraHome = '/workspace/extra'

const secretNames = [
  /^\.(ssh|gnupg|gpg|aws|azure|gcloud|kube|docker|netrc|npmrc|pypirc|pgpass|my\.cnf|vault-token)$/,
  /^\.(git-credentials|password-store|terraform\.d|cargo-credentials|htpasswd|config-gcloud|oci|mozilla)$/,
  /^_netrc$/,
  /^\.env(\..*|rc)?$/,
  /^id_(rsa|dsa|ecdsa|ed25519)(_sk)?$/,
  /^credentials?(\..*)?$/,
  /^(service-?account|client_secret).*\.json$/,
  /\.(pem|key|p12|pfx|kdbx|keystore|jks)$/,
  /^(shadow|gshadow|sudoers)$/,
]
/** Says what belongs there and holds nothing. */
const harmless = /^\.env\.(example|sample|template|dist|defaults)$/

const isSecret = (name: string): boolean =>
  !harmless.test(name.toLowerCase()) && secretNames.some(pattern => pattern.test(name.toLowerCase()))

/** The system's own: engines' sockets, devices, and passwords are here. */
const systemPlaces = ['/proc', '/sys', '/dev', '/run', '/var/run', '/boot', '/etc', '/var/lib/docker']

/** Whether `path` is `parent` or lies below it. Both resolved. */
const isWithin = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(parent.endsWith(sep) ? parent : parent + sep)
const overlap = (one: string, other: string) => isWithin(one, other) || isWithin(other, one)

const resolved = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

export function checkMounts(requests: readonly MountRequest[], rules: MountRules): CheckedMounts {
  if (requests.length === 0) return { ok: true, mounts: [] }
  const allowed = readAllowed(rules)
  if (typeof allowed === 'string') return { ok: false, problems: [allowed] }
  const problems: string[] = []
  const mounts: Mount[] = []
  for (const request of requests) {
    const checked = checkOne(request, allowed, rules)
    if (typeof checked === 'string') problems.push(`The mount ${request.from} is refused: ${checked}`)
    else if (mounts.some(({ to }) => overlap(to, checked.to)))
      problems.push(`The mount ${request.from} is refused: another one is at ${checked.to} already.`)
    else mounts.push(checked)
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, mounts }
}

interface Allowed {
  file: string
  directories: readonly string[]
}

function readAllowed({ allowedFile, project, data }: MountRules): Allowed | string {
  if (allowedFile === undefined)
    return 'Mounts are configured, but no list allows them. Name one in `mountsAllowed`.'
  const found = lstatSync(allowedFile, { throwIfNoEntry: false })
  if (!found) return `The list of allowed mounts, ${allowedFile}, does not exist.`
  const file = realpathSync(allowedFile)
  for (const place of [project, data]) {
    if (isWithin(file, resolved(place)))
      return `The list of allowed mounts, ${allowedFile}, lies in ${place}, where an agent's work may reach it. Move it elsewhere.`
  }
  const { mode, uid } = statSync(file)
  if (uid !== 0 && uid !== process.getuid?.())
    return `The list of allowed mounts, ${allowedFile}, belongs to another user. It must belong to this one or to root.`
  if ((mode & 0o022) !== 0)
    return `The list of allowed mounts, ${allowedFile}, can be written by others. Run: chmod go-w ${allowedFile}`
  const directories: string[] = []
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const entry = line.trim()
    if (entry === '' || entry.startsWith('#')) continue
    const path = entry.startsWith('~/') ? join(homedir(), entry.slice(2)) : entry
    if (!isAbsolute(path)) return `${allowedFile}: ${entry} is not an absolute path.`
    // A directory that does not exist allows nothing; it may be on a disk that is not there today.
    if (existsSync(path)) directories.push(realpathSync(path))
  }
  return { file, directories }
}

function checkOne(request: MountRequest, allowed: Allowed, rules: MountRules): Mount | string {
  const to = target(request.to)
  if (to === undefined)
    return `its place in the sandbox must be a name or a path below ${extraHome}, not ${request.to}.`
  if (!isAbsolute(request.from)) return 'it is not an absolute path.'
  if (!existsSync(request.from)) return 'it does not exist.'
  const from = realpathSync(request.from)
  const kind = statSync(from)
  if (!kind.isDirectory() && !kind.isFile()) return 'only directories and regular files can be mounted.'
  const below = allowed.directories.find(directory => directory !== '/' && isWithin(from, directory))
  if (below === undefined) return `${from} is not below a directory that the list allows.`
  const data = resolved(rules.data)
  if (overlap(from, data)) return 'it is, holds or lies in the data directory.'
  if (isWithin(allowed.file, from)) return 'the list of allowed mounts lies in it.'
  const place = systemPlaces.map(resolved).find(system => overlap(from, system))
  if (place !== undefined) return `${place} belongs to the system.`
  const part = from.split(sep).find(isSecret)
  if (part !== undefined) return `${part} is where secrets are kept.`
  const inside = kind.isDirectory() ? secretIn(from) : undefined
  if (inside !== undefined)
    return `it holds ${inside}, where secrets are kept. Move that out, or mount a directory beside it.`
  return { from, to, writable: request.writable }
}

function target(to: string): string | undefined {
  const path = isAbsolute(to) ? to : join(extraHome, to)
  const parts = path.split('/').slice(1)
  const plain = parts.every(part => part !== '' && part !== '.' && part !== '..' && !part.includes('\0'))
  return plain && path.startsWith(`${extraHome}/`) ? path : undefined
}

/** Enough for a project; a tree so large that it is not seen through is the operator's to know. */
const mostEntries = 20_000
const passedBy = new Set(['node_modules', '.git'])

/** The first secret in a tree, as a path relative to it. Links are not followed: in the sandbox they lead nowhere. */
function secretIn(root: string): string | undefined {
  const open = ['']
  for (let seen = 0; open.length > 0 && seen < mostEntries; ) {
    const directory = open.shift() ?? ''
    for (const entry of entriesOf(join(root, directory))) {
      seen++
      const path = join(directory, entry.name)
      if (isSecret(basename(path))) return path
      if (entry.isDirectory() && !passedBy.has(entry.name)) open.push(path)
    }
  }
  return undefined
}

function entriesOf(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch (error) {
    // What we may not read, an agent under the same user may not either.
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}
