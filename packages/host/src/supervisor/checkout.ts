import { execFile } from 'node:child_process'

/** What is asked of git, beside everything else that goes on, and without running anybody's hooks. */
export interface Checkout {
  head(): Promise<string>
  /** undefined: a revision without a branch is checked out */
  branch(): Promise<string | undefined>
  tip(branch: string): Promise<string | undefined>
  /** one that ends with this revision */
  branchAt(revision: string): Promise<string | undefined>
  /** tracked files with changes that are not committed */
  changes(): Promise<string[]>
  /** how many commits the second has and the first has not, and what the newest of them say of themselves */
  log(from: string, to: string, most: number): Promise<{ commits: number; newest: string[] }>
  switchTo(branch: string): Promise<void>
  /** leaves the branch where it is; changes to tracked files are kept in the stash */
  goTo(revision: string): Promise<void>
}

const careful = [
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'advice.detachedHead=false',
]
const nobody = [
  '-c',
  'user.name=Hatchway',
  '-c',
  'user.email=hatchway@localhost',
  '-c',
  'commit.gpgSign=false',
]
const timeoutMs = 120_000

export function checkoutIn(directory: string, environment: NodeJS.ProcessEnv = process.env): Checkout {
  const env = Object.fromEntries(
    Object.entries({ ...environment, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' }).filter(
      ([name]) => !name.startsWith('GIT_') || name === 'GIT_TERMINAL_PROMPT',
    ),
  )
  const git = (...args: string[]) =>
    new Promise<string>((resolve, reject) => {
      execFile(
        'git',
        [...careful, ...args],
        { cwd: directory, env, timeout: timeoutMs, maxBuffer: 16_777_216 },
        (error, out, err) => {
          if (!error) return resolve(out)
          const words = err.trim().slice(-1000)
          reject(
            new Error(
              `git ${args.find(word => /^[a-z][a-z-]*$/.test(word)) ?? ''} failed: ${words || error.message}`,
            ),
          )
        },
      )
    })
  const goTo = (revision: string) => git('checkout', '--quiet', '--detach', revision, '--')

  return {
    head: async () => (await git('rev-parse', '--verify', 'HEAD^{commit}')).trim(),
    async branch() {
      const name = (await git('rev-parse', '--abbrev-ref', 'HEAD')).trim()
      return name === 'HEAD' ? undefined : name
    },
    async tip(branch) {
      try {
        return (await git('rev-parse', '--verify', `refs/heads/${branch}^{commit}`)).trim()
      } catch {
        return undefined
      }
    },
    async branchAt(revision) {
      const points = ['--points-at', revision, '--count=1', '--format=%(refname:short)']
      return (await git('for-each-ref', ...points, 'refs/heads')).trim() || undefined
    },
    async changes() {
      const out = await git(
        '--no-optional-locks',
        'status',
        '--porcelain=v1',
        '-z',
        '--untracked-files=no',
        '--no-renames',
      )
      return out
        .split('\0')
        .filter(line => line !== '')
        .map(line => line.slice(3))
    },
    async log(from, to, most) {
      const range = `${from}..${to}`
      const count = await git('rev-list', '--count', range, '--')
      const lines = await git(
        ...['log', '-z', `--max-count=${most}`, '--no-show-signature', '--format=%h %<(200,trunc)%s'],
        ...[range, '--'],
      )
      const newest = lines.split('\0').map(line => line.trim())
      return { commits: Number(count), newest: newest.filter(line => line !== '') }
    },
    switchTo: async branch => void (await git('checkout', '--quiet', branch, '--')),
    async goTo(revision) {
      try {
        await goTo(revision)
      } catch {
        // A build may have written to tracked files. Whoever's changes they are, they can be had back.
        await git(...nobody, 'stash', 'push', '--quiet', '--message', `before going back to ${revision}`)
        await goTo(revision)
      }
    },
  }
}
