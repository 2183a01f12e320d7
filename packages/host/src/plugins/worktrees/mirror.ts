import { mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServiceRefusal } from '../../services/define.ts'
import { callGit, type GitAnswer, ownEnvironment } from './git.ts'
import { type OperatorsRepository, startingRefs } from './operator.ts'
import type { Repo } from './settings.ts'
import { visibleEnd } from './words.ts'

/** What git in a sandbox is told, in a file that no agent can change: also what it starts reads it. */
export const agentSettings = 'agents.gitconfig'
const settingsText = `[safe]
\tdirectory = *
[core]
\teditor = true
\tpager = cat
[advice]
\tdetachedHead = false
`

const refreshMs = 60_000

/**
 * A mirror is the host's copy of the one branch that agents begin from, with all its objects and no link to any other
 * repository. Sandboxes see it read-only: as what they fetch from, and as the store of the objects that all of them
 * share. This makes it if need be and brings it up. The branch's tip.
 */
export async function refreshMirror(
  mirror: string,
  repo: Repo,
  operators: OperatorsRepository,
  signal: AbortSignal,
): Promise<string> {
  await make(mirror, operators, signal)
  const { ref, tip } = await startOf(repo, operators)
  const head = `refs/heads/${repo.branch}`
  const environment = ownEnvironment(join(mirror, agentSettings))
  const git = (args: readonly string[]) =>
    callGit({ at: mirror, lasting: mirror, args, environment, timeoutMs: refreshMs, signal })
  const known = await git(['rev-parse', '--verify', '--quiet', head])
  if (known.code === 0 && known.stdout.trim() === tip) return tip
  const fetched = await git([
    ...['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules'],
    ...['--end-of-options', repo.path, `+${ref}:${head}`],
  ])
  if (fetched.code !== 0) throw failed(`${repo.path} could not be copied`, fetched)
  // It may have moved meanwhile.
  const now = await git(['rev-parse', '--verify', '--quiet', head])
  if (now.code !== 0) throw failed(`The copy of ${repo.path} cannot be read`, now)
  await git(['symbolic-ref', 'HEAD', head])
  return now.stdout.trim()
}

async function startOf(repo: Repo, operators: OperatorsRepository): Promise<{ ref: string; tip: string }> {
  for (const ref of startingRefs(repo)) {
    const tip = await operators.revision(ref)
    if (tip !== undefined) return { ref, tip }
  }
  throw new ServiceRefusal('service_failed', `There is no branch ${repo.branch} in ${repo.path}.`)
}

async function make(mirror: string, operators: OperatorsRepository, signal: AbortSignal): Promise<void> {
  const settings = join(mirror, agentSettings)
  // The last thing that is made.
  if (await exists(settings)) return
  await rm(mirror, { recursive: true, force: true })
  await mkdir(mirror, { recursive: true, mode: 0o755 })
  const format = await operators.objectFormat()
  const made = await callGit({
    at: mirror,
    args: ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, '.'],
    environment: ownEnvironment(),
    timeoutMs: refreshMs,
    signal,
  })
  if (made.code !== 0) throw failed('A repository could not be made', made)
  // Worktrees lean on these objects: none is ever thrown away.
  const kept = await callGit({
    at: mirror,
    args: ['config', 'gc.pruneExpire', 'never'],
    environment: ownEnvironment(),
    timeoutMs: refreshMs,
    signal,
  })
  if (kept.code !== 0) throw failed('A repository could not be made', kept)
  await writeFile(settings, settingsText, { mode: 0o644 })
}

const exists = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}

const failed = (what: string, { stderr, ended, code }: GitAnswer) =>
  new ServiceRefusal(
    'service_failed',
    `${what}: ${visibleEnd(ended ?? (stderr.trim() || `git ended with ${code}`), 1000)}`,
  )
