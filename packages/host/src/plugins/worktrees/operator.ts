import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { ServiceRefusal } from '../../services/define.ts'
import { callGit, type GitAnswer, type GitCall } from './git.ts'
import type { Repo } from './settings.ts'
import { visibleEnd } from './words.ts'

/**
 * The operator's own repository. His settings count there, for his remote wants his credentials; but no hook runs, and
 * what agents sent is never fetched by address. A host that is root becomes the user it belongs to.
 */
export interface OperatorsRepository {
  /** the revision a name stands for, as a full id */
  revision(name: string): Promise<string | undefined>
  isAncestor(older: string, newer: string): Promise<boolean>
  objectFormat(): Promise<string>
  /** brings the remote's branch to `refs/remotes/…` */
  fetch(): Promise<void>
  /** takes the objects of a pack of ours */
  take(pack: string): Promise<void>
  /** where a branch is checked out; undefined: nowhere */
  checkout(branch: string): Promise<string | undefined>
  /** whether a checkout has changes of files that git knows */
  isClean(checkout: string): Promise<boolean>
  /** Moves a branch that is where we think it is. False: it has moved. */
  move(branch: string, to: string, from: string | undefined): Promise<boolean>
  /** the same where it is checked out */
  forward(checkout: string, to: string): Promise<boolean>
  /** False: the remote has something else there. */
  push(branch: string, revision: string, lease?: string): Promise<boolean>
  /** what the remote has there */
  onRemote(branch: string): Promise<string | undefined>
}

const gitMs = 30_000
const ownOnly = /^(?:SSH_AUTH_SOCK|XDG_CONFIG_HOME)$/
const networkMs = 60_000
const workMs = 300_000
const passedOn =
  /^(?:PATH|LANG|LC_\w+|TZ|SSH_AUTH_SOCK|XDG_CONFIG_HOME|SSL_CERT_\w+|GIT_SSH\w*|\w+_proxy|\w+_PROXY)$/

export function operatorsRepository(repo: Repo, signal: AbortSignal): OperatorsRepository {
  const { path, remote } = repo
  const who = ownerOf(path)
  const git = (args: readonly string[], more: Partial<Pick<GitCall, 'at' | 'input' | 'timeoutMs'>> = {}) =>
    callGit({
      at: path,
      lasting: path,
      args,
      environment: environmentOf(who),
      user: who,
      timeoutMs: gitMs,
      signal,
      ...more,
    })
  const known = (): string => {
    if (remote === undefined) throw new Error('no remote is configured')
    return remote
  }
  const must = async (what: string, answering: Promise<GitAnswer>): Promise<string> => {
    const answer = await answering
    if (answer.code === 0) return answer.stdout
    throw failed(what, answer)
  }
  return {
    async revision(name) {
      const answer = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`])
      if (answer.code === 0) return answer.stdout.trim()
      // 1: there is no such thing; anything else: there is no looking.
      if (answer.code === 1 && answer.stderr === '') return undefined
      throw failed(`${path} cannot be read`, answer)
    },
    async isAncestor(older, newer) {
      const answer = await git(['merge-base', '--is-ancestor', older, newer])
      if (answer.code === 0 || answer.code === 1) return answer.code === 0
      throw failed(`${path} cannot be read`, answer)
    },
    objectFormat: async () =>
      (await must(`${path} cannot be read`, git(['rev-parse', '--show-object-format']))).trim(),
    async fetch() {
      const ref = `refs/heads/${repo.branch}`
      await must(
        `${known()} could not be asked for ${repo.branch}`,
        git(
          [
            ...['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head'],
            ...['--end-of-options', known(), `+${ref}:${trackingRef(repo)}`],
          ],
          { timeoutMs: networkMs },
        ),
      )
    },
    async take(pack) {
      await must(
        `${path} did not take the commits`,
        git(['index-pack', '--stdin', '--fix-thin', '--strict'], { input: pack, timeoutMs: workMs }),
      )
    },
    async checkout(branch) {
      const listed = await must(`${path} cannot be read`, git(['worktree', 'list', '--porcelain', '-z']))
      const found = listed
        .split('\0\0')
        .map(entry => entry.split('\0'))
        .find(lines => lines.includes(`branch refs/heads/${branch}`) && !lines.includes('bare'))
      return found?.find(line => line.startsWith('worktree '))?.slice('worktree '.length)
    },
    async isClean(checkout) {
      const changed = await must(
        `${checkout} cannot be looked at`,
        git(['status', '--porcelain', '--untracked-files=no', '--ignore-submodules=all'], { at: checkout }),
      )
      return changed.trim() === ''
    },
    async move(branch, to, from) {
      const answer = await git([
        ...['update-ref', '-m', 'hatchway: sync', `refs/heads/${branch}`, to],
        from ?? '0'.repeat(to.length),
      ])
      if (answer.code === 0) return true
      if (/cannot lock ref|but expected|reference already exists/.test(answer.stderr)) return false
      throw failed(`${branch} could not be moved in ${path}`, answer)
    },
    async forward(checkout, to) {
      const answer = await git(['merge', '--ff-only', '--quiet', to], { at: checkout, timeoutMs: workMs })
      if (answer.code === 0) return true
      if (/[Nn]ot possible to fast-forward|[Dd]iverging branches/.test(answer.stderr)) return false
      throw new ServiceRefusal(
        'wrong_state',
        `The operator’s checkout at ${checkout} cannot be brought up: ${wordsOf(answer)}`,
      )
    },
    async push(branch, revision, lease) {
      const ref = `refs/heads/${branch}`
      const answer = await git(
        [
          ...['push', '--quiet', '--porcelain', '--no-verify', '--no-follow-tags', '--recurse-submodules=no'],
          ...(lease === undefined ? [] : [`--force-with-lease=${ref}:${lease}`]),
          ...['--end-of-options', known(), `${revision}:${ref}`],
        ],
        { timeoutMs: networkMs },
      )
      if (answer.code === 0) return true
      if (
        /\[rejected\]|stale info|cannot lock ref|incorrect old value|fetch first/.test(
          answer.stdout + answer.stderr,
        )
      )
        return false
      throw failed(`${known()} did not take ${branch}`, answer)
    },
    async onRemote(branch) {
      const listed = await must(
        `${known()} could not be asked for ${branch}`,
        git(['ls-remote', '--quiet', '--end-of-options', known(), `refs/heads/${branch}`], {
          timeoutMs: networkMs,
        }),
      )
      const revision = /^[0-9a-f]{40,64}/.exec(listed)?.[0]
      return revision
    },
  }
}

/** What the operator's repository knows the remote's branch as. */
const trackingRef = ({ remote, branch }: Repo): string => `refs/remotes/${remote}/${branch}`

/** Where agents begin: what the remote has, where there is one and it has been asked; else the branch itself. */
export const startingRefs = (repo: Repo): string[] => [
  ...(repo.remote === undefined ? [] : [trackingRef(repo)]),
  `refs/heads/${repo.branch}`,
]

const wordsOf = ({ stderr, stdout, ended, code }: GitAnswer): string =>
  visibleEnd(ended ?? (stderr.trim() || stdout.trim() || `git ended with ${code}`), 1000)

const failed = (what: string, answer: GitAnswer) =>
  new ServiceRefusal('service_failed', `${what}: ${wordsOf(answer)}`)

/** Undefined: it is ours, or we are nobody to become another. */
function ownerOf(path: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw new ServiceRefusal('service_failed', `There is no repository at ${path}.`)
  return found.uid === 0 ? undefined : { uid: found.uid, gid: found.gid }
}

function environmentOf(who: { uid: number } | undefined): Record<string, string> {
  const mayPass = (name: string) => passedOn.test(name) && !(who && ownOnly.test(name))
  const passed = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && mayPass(name) ? [[name, value] as const] : [],
  )
  return {
    ...Object.fromEntries(passed),
    LC_ALL: 'C.UTF-8',
    HOME: who ? homeOf(who.uid) : homedir(),
    // What an agent committed may name a server to fetch large files from.
    GIT_LFS_SKIP_SMUDGE: '1',
  }
}

const homeOf = (uid: number): string =>
  readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
    .find(fields => fields[2] === String(uid))?.[5] ?? '/nonexistent'
