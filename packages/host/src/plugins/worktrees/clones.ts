import { lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { WorkQueue } from '../../base/keyed-queue.ts'
import { type Layout, ownedDirectory } from '../../base/layout.ts'
import type { Owners } from '../../base/owners.ts'
import type { Room, RunMounts } from '../../runs/hooks.ts'
import type { Mount, Sandbox } from '../../sandboxes/types.ts'
import { branchOf, refusalFor } from './answers.ts'
import { askInside, type Report } from './inside.ts'
import { agentSettings, refreshMirror } from './mirror.ts'
import { type OperatorsRepository, operatorsRepository } from './operator.ts'
import type { GroupRepository } from './repositories.ts'
import { prepareScript } from './scripts.ts'

/** The clones that groups work in, and the mirrors whose objects they use. */
export interface Clones {
  /** makes what the group's agent is to find; throws with the reason if that cannot be */
  prepare(group: GroupRepository, room: Room, signal: AbortSignal): Promise<void>
  /** brings the mirror up to the operator's branch, or the remote's; the branch's tip */
  refresh(group: GroupRepository, operators: OperatorsRepository, signal: AbortSignal): Promise<string>
  /** runs a script in the group's clone, one at a time in each; `pack` is where commits that follow are put */
  run(
    group: GroupRepository,
    script: string,
    room: Room,
    signal: AbortSignal,
    pack?: { path: string; most: number },
  ): Promise<Report>
}

const insideProject = { worktree: '/workspace/project', mirror: '/workspace/project.git' } as const
const scriptMs = 60_000

/** Where a sandbox finds the clone and the mirror. */
export const placesFor = (
  { worktree, mirror }: Pick<GroupRepository, 'worktree' | 'mirror'>,
  { isolated }: Pick<Sandbox, 'isolated'>,
) => (isolated ? insideProject : { worktree, mirror })

export const mountsOf = ({ worktree, mirror }: Pick<GroupRepository, 'worktree' | 'mirror'>): Mount[] => [
  { from: mirror, to: insideProject.mirror, writable: false },
  { from: worktree, to: insideProject.worktree, writable: true },
]

/** What the sandbox of a group's agent gets beside everything else. */
export function agentMounts(group: GroupRepository, sandbox: Pick<Sandbox, 'isolated'>): RunMounts {
  const { worktree, mirror } = placesFor(group, sandbox)
  return {
    mounts: mountsOf(group),
    environment: { HATCHWAY_PROJECT_DIR: worktree, GIT_CONFIG_SYSTEM: join(mirror, agentSettings) },
  }
}

export function createClones(options: {
  layout: Pick<Layout, 'repos' | 'worktrees'>
  owners: Owners
  queue: WorkQueue
  log: Logger
}): Clones {
  const { layout, owners, queue, log } = options
  /** those whose clone was made, or looked at, since the start */
  const prepared = new Set<string>()

  const refresh: Clones['refresh'] = ({ name, repo, mirror }, operators, signal) =>
    queue.run(`mirror ${name}`, signal, () => {
      mkdirSync(layout.repos, { recursive: true, mode: 0o755 })
      return refreshMirror(mirror, repo, operators, signal)
    })

  const run: Clones['run'] = (group, script, room, signal, pack) => {
    const { folder, repo } = group
    const { worktree, mirror } = placesFor(group, room.sandbox)
    const errand = {
      folder,
      script,
      mounts: mountsOf(group),
      workingDirectory: worktree,
      environment: {
        GIT_CONFIG_SYSTEM: join(mirror, agentSettings),
        WORKTREE: worktree,
        MIRROR: mirror,
        BRANCH: branchOf(folder),
        UPSTREAM: repo.branch,
        NAME: folder,
      },
      timeoutMs: scriptMs,
      signal,
    }
    return queue.run(`worktree ${folder}`, signal, () => askInside(room, errand, pack))
  }

  const makeDirectory = ({ folder, worktree }: GroupRepository) => {
    mkdirSync(layout.worktrees, { recursive: true, mode: 0o755 })
    ownedDirectory(worktree, owners(folder))
    if (!lstatSync(worktree).isDirectory()) {
      throw new Error(`${worktree} is not a directory. Look at it, then remove it.`)
    }
  }

  const prepare: Clones['prepare'] = async (group, room, signal) => {
    const { folder, name, repo, worktree } = group
    try {
      await refresh(group, operatorsRepository(repo, signal), signal)
    } catch (error) {
      // A repository that is out of reach for a while need not keep the agent from its work.
      if (!hasTip(group)) throw error
      log.warn({ err: error, group: folder, repo: name }, 'a repository could not be looked at')
    }
    makeDirectory(group)
    const key = `${folder} ${room.sandbox.isolated}`
    if (prepared.has(key) && exists(join(worktree, '.git'))) return
    const problem = refusalFor(await run(group, prepareScript, room, signal), folder, repo)
    if (problem) {
      throw new Error(
        `${problem.message}\nLook at ${worktree}; if nothing in it is needed, remove it and it is made anew.`,
      )
    }
    prepared.add(key)
  }

  return { prepare, refresh, run }
}

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

const hasTip = ({ mirror, repo: { branch } }: GroupRepository): boolean =>
  exists(join(mirror, 'packed-refs')) || exists(join(mirror, 'refs', 'heads', branch))
