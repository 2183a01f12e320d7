import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Fault } from '../../base/fault.ts'
import { type Layout, ownedDirectory } from '../../base/layout.ts'
import type { Owners } from '../../base/owners.ts'
import { removeTree } from '../../base/remove-tree.ts'
import type { EvidenceContext, Step, Work } from '../../commands/service-tools.ts'
import type { Repo } from '../../config/repos.ts'
import type { Config } from '../../config.ts'
import type { Mount, Sandbox } from '../../sandboxes/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { AuditStore } from '../../store/audit-types.ts'
import { aboutWorktree, branchOf, countOf, refusalFor, type SyncAnswer } from './answers.ts'
import { deliver, follow } from './delivery.ts'
import { askInside, type Errand, type Report, type Room, tryInside } from './inside.ts'
import { agentSettings, mirrorPath, refreshMirror } from './mirror.ts'
import { type OperatorsRepository, operatorsRepository } from './operator.ts'
import { examine, isRevision, largestPack, type Proposal } from './proposal.ts'
import { openRecords, type SyncRecord } from './records.ts'
import { fetchScript, prepareScript, syncScript, testScript } from './scripts.ts'
import { createTurns } from './turns.ts'
import { visibleLine } from './words.ts'

/**
 * What groups have of repositories. A group with `repo` has a clone of its own that its agent may do anything with, and
 * a mirror of the branch, read-only, whose objects the clone uses. A sync goes through these:
 *
 *   look      the mirror is brought up to the operator's branch, or the remote's
 *   rebase    in a sandbox: the group's commits are put on top of it; they come out as a pack
 *   examine   the host takes the pack into a repository of its own, and looks at everything in it
 *   test      the operator's command runs in a sandbox, in a tree of its own
 *   deliver   the branch is moved, if it is still where it was; if not, all over again
 *   tell      the other groups of the repository, and the audit log
 *
 * Git is never run on the host in a directory that an agent can write to: whoever writes its settings chooses what it
 * runs. A host that dies anywhere in between finds by its records whether the delivery was made.
 */
export interface Worktrees {
  of(folder: string): Worktree | undefined
  all(): readonly Worktree[]
  /** makes what the group's agent is to find; throws with the reason if that cannot be */
  ensure(group: Pick<Group, 'folder'>, room: Room): Promise<void>
  /** what its agent's sandbox gets beside everything else; undefined: nothing */
  seenBy(folder: string, sandbox: Pick<Sandbox, 'isolated'>): Seen | undefined
  /** throws a `ServiceRefusal` for a clear no */
  sync(folder: string, options: SyncOptions): Promise<SyncAnswer>
  work: Work
  /** agents are run from now on, and this is where */
  opened(rooms: (folder: string) => Promise<Room>): void
  /** what is under way is told to stop, and found again at the next start */
  stop(): Promise<void>
}

export interface Worktree {
  group: string
  repo: string
  branch: string
  policy: Repo['policy']
  mergesAtEnd: boolean
  pushes: boolean
  remote: string | undefined
  /** on the host */
  path: string
  /** for its agent */
  about: string
}

interface Seen {
  mounts: Mount[]
  environment: Record<string, string>
}

export interface SyncOptions {
  /** names it over restarts; left out: it is asked for once */
  id?: string
  requestId?: string | null
  actor?: 'agent' | 'operator' | 'host'
  /** the revision that somebody has approved: no other is merged */
  approved?: string | undefined
  signal: AbortSignal
  progress?(step: Step): void
}

export interface WorktreesOptions {
  config: Pick<Config, 'repos' | 'groups' | 'agents'>
  layout: Layout
  owners: Owners
  audit: Pick<AuditStore, 'append'>
  isRegistered(folder: string): boolean
  /** called before the group's commits can be read by the other groups that have the repository */
  merges(folder: string, repo: string, readers: readonly string[]): void
  /** the host's word to a group's agent; once for each `about` */
  tell(folder: string, about: string, text: string): void
  fault: Fault
  log: Logger
}

export const insideProject = { worktree: '/workspace/project', mirror: '/workspace/project.git' } as const
const insideProposal = '/workspace/proposal'

const insideMs = 60_000
const restMs = 120_000
const farewellMs = 2000
/** of which people are told how far a sync has come */
const steps = 4
/** A branch that moves faster than this is not ours to run after. */
const attempts = 5

export function createWorktrees(options: WorktreesOptions): Worktrees {
  const { config, layout, owners, audit, fault, log } = options
  const turns = createTurns()
  const records = openRecords(join(layout.state, 'syncs'))
  const scratch = join(layout.repos, '.syncs')
  /** those whose worktree was made, or looked at, since the start */
  const prepared = new Set<string>()
  const leaving = new AbortController()
  const underWay = new Set<Promise<SyncAnswer>>()
  const rooms = Promise.withResolvers<((folder: string) => Promise<Room>) | undefined>()
  if (config.agents.enabled === 'no') rooms.resolve(undefined)

  const repoOf = (folder: string): { name: string; repo: Repo } | undefined => {
    const name = config.groups[folder]?.repo
    const repo = name === undefined ? undefined : config.repos[name]
    return name === undefined || !repo ? undefined : { name, repo }
  }
  const worktreePath = (folder: string) => join(layout.worktrees, folder)
  const of = (folder: string): Worktree | undefined => {
    const found = repoOf(folder)
    return (
      found && {
        group: folder,
        repo: found.name,
        branch: found.repo.branch,
        policy: found.repo.policy,
        mergesAtEnd: found.repo.mergeAtEnd,
        pushes: found.repo.remote !== undefined,
        remote: found.repo.remote,
        path: worktreePath(folder),
        about: aboutWorktree(folder, found.repo),
      }
    )
  }

  const placesFor = (folder: string, name: string, isIsolated: boolean) =>
    isIsolated ? insideProject : { worktree: worktreePath(folder), mirror: mirrorPath(layout, name) }

  const mountsOf = (folder: string, name: string): Mount[] => [
    { from: mirrorPath(layout, name), to: insideProject.mirror, writable: false },
    { from: worktreePath(folder), to: insideProject.worktree, writable: true },
  ]

  const errandOf = (folder: string, script: string, room: Room, signal: AbortSignal): Errand => {
    const { name, repo } = known(folder)
    const { worktree, mirror } = placesFor(folder, name, room.sandbox.isolated)
    return {
      folder,
      script,
      mounts: mountsOf(folder, name),
      workingDirectory: worktree,
      environment: {
        GIT_CONFIG_SYSTEM: join(mirror, agentSettings),
        WORKTREE: worktree,
        MIRROR: mirror,
        BRANCH: branchOf(folder),
        UPSTREAM: repo.branch,
        NAME: folder,
      },
      timeoutMs: insideMs,
      signal,
    }
  }

  const known = (folder: string) => {
    const found = repoOf(folder)
    if (!found) throw new ServiceRefusal('unavailable', 'No repository is configured for this group.')
    return found
  }

  const refresh = (folder: string, operators: OperatorsRepository, signal: AbortSignal): Promise<string> => {
    const { name, repo } = known(folder)
    return turns.take(`mirror ${name}`, signal, () => {
      mkdirSync(layout.repos, { recursive: true, mode: 0o755 })
      return refreshMirror(mirrorPath(layout, name), repo, operators, signal)
    })
  }

  /** One at a time in each worktree. */
  const asked = (
    folder: string,
    script: string,
    room: Room,
    signal: AbortSignal,
    pack?: { path: string; most: number },
  ): Promise<Report> =>
    turns.take(`worktree ${folder}`, signal, () =>
      askInside(room, errandOf(folder, script, room, signal), pack),
    )

  const directoryFor = (folder: string) => {
    mkdirSync(layout.worktrees, { recursive: true, mode: 0o755 })
    ownedDirectory(worktreePath(folder), owners(folder))
    if (!lstatSync(worktreePath(folder)).isDirectory()) {
      throw new Error(`${worktreePath(folder)} is not a directory. Look at it, then remove it.`)
    }
  }

  const ensure = async ({ folder }: Pick<Group, 'folder'>, room: Room, signal: AbortSignal) => {
    const { name, repo } = known(folder)
    const mirror = mirrorPath(layout, name)
    try {
      await refresh(folder, operatorsRepository(repo, signal), signal)
    } catch (error) {
      // A repository that is out of reach for a while need not keep the agent from its work.
      if (!lstatSync(join(mirror, 'packed-refs'), { throwIfNoEntry: false }) && !hasTip(mirror, repo))
        throw error
      log.warn({ err: error, group: folder, repo: name }, 'a repository could not be looked at')
    }
    directoryFor(folder)
    const key = `${folder} ${room.sandbox.isolated}`
    const isThere = lstatSync(join(worktreePath(folder), '.git'), { throwIfNoEntry: false }) !== undefined
    if (prepared.has(key) && isThere) return
    const problem = refusalFor(await asked(folder, prepareScript, room, signal), folder, repo)
    if (problem) {
      throw new Error(
        `${problem.message}\nLook at ${worktreePath(folder)}; if nothing in it is needed, remove it and it is made anew.`,
      )
    }
    prepared.add(key)
  }

  const test = async (
    folder: string,
    directory: string,
    proposal: Proposal,
    room: Room,
    signal: AbortSignal,
  ): Promise<void> => {
    const { name, repo } = known(folder)
    if (repo.test === undefined) return
    const tree = join(directory, 'tree')
    ownedDirectory(tree, owners(folder))
    const { isolated } = room.sandbox
    const worktree = isolated ? insideProject.worktree : tree
    const mirror = isolated ? insideProject.mirror : mirrorPath(layout, name)
    const { isOk, how, output } = await tryInside(room, {
      folder,
      script: testScript,
      mounts: [
        { from: mirrorPath(layout, name), to: insideProject.mirror, writable: false },
        { from: join(proposal.objects, 'pack'), to: `${insideProposal}/pack`, writable: false },
        { from: tree, to: insideProject.worktree, writable: true },
      ],
      workingDirectory: worktree,
      environment: {
        GIT_CONFIG_SYSTEM: join(mirror, agentSettings),
        WORKTREE: worktree,
        MIRROR: mirror,
        PROPOSAL: isolated ? insideProposal : proposal.objects,
        REVISION: proposal.revision,
        TEST: repo.test,
      },
      timeoutMs: repo.testMs,
      signal,
    })
    if (isOk) return
    throw new ServiceRefusal(
      'check_failed',
      `Nothing was merged: the check of the merged files ${how}.${output === '' ? '' : `\n${output}`}`,
    )
  }

  const othersOf = (folder: string, repo: string): string[] =>
    Object.keys(config.groups).filter(other => other !== folder && repoOf(other)?.name === repo)

  const tellOthers = (folder: string, record: SyncRecord) => {
    const { repo } = known(folder)
    const others = othersOf(folder, record.repo).filter(options.isRegistered)
    const subjects = record.subjects.map(subject => `\n- ${subject}`).join('')
    const more = record.commits > record.subjects.length ? '\n- …' : ''
    for (const other of others) {
      options.tell(
        other,
        `sync:${record.repo}:${record.revision}`,
        `${folder} has merged ${countOf(record.commits)} into ${repo.branch} of ${record.repo}, now ${record.revision.slice(0, 12)}. Your next sync puts your commits on top of it; git fetch in your worktree shows it. What the commits say of themselves:${subjects}${more}`,
      )
    }
  }

  /** It is delivered: the rest can be done again without harm. */
  const conclude = async (
    folder: string,
    record: SyncRecord,
    id: string,
    remark: string,
    operators: OperatorsRepository,
    room: Room,
    { signal, actor = 'agent', requestId = null }: SyncOptions,
  ): Promise<SyncAnswer> => {
    const { repo } = known(folder)
    const { revision, commits } = record
    if (!record.isTold) {
      if (record.policy === 'merge') tellOthers(folder, record)
      const where = record.policy === 'merge' ? repo.branch : branchOf(folder)
      audit.append({
        at: Date.now(),
        group: folder,
        actor,
        action: 'sync_worktree',
        summary: `${countOf(commits)} on ${where} of ${record.repo}`,
        outcome: 'merged',
        decidedBy: 'host',
        requestId,
        details: { repo: record.repo, policy: record.policy, revision, base: record.base, commits },
      })
      fault('sync_told')
      await records.write(id, { ...record, isTold: true })
    }
    try {
      await refresh(folder, operators, signal)
      await asked(folder, fetchScript, room, signal)
    } catch (error) {
      log.warn({ err: error, group: folder }, 'a worktree was synced, and does not know it yet')
    }
    const short = revision.slice(0, 12)
    const pushed = repo.remote === undefined ? '' : `, and ${repo.remote} has it`
    return record.policy === 'merge'
      ? {
          merged: true,
          commits,
          revision,
          message: `Merged ${countOf(commits)}: ${repo.branch} is at ${short}${pushed}.${remark}`,
        }
      : {
          merged: false,
          commits,
          revision,
          branch: branchOf(folder),
          message: `${countOf(commits)} for review: the branch ${branchOf(folder)} is at ${short}${pushed}.`,
        }
  }

  /** Whether an earlier process has delivered it. */
  const isDelivered = async (
    folder: string,
    { revision }: SyncRecord,
    operators: OperatorsRepository,
  ): Promise<boolean> => {
    const { repo } = known(folder)
    if ((await operators.revision(revision)) === undefined) return false
    if (repo.policy === 'branch')
      return (await operators.revision(`refs/heads/${branchOf(folder)}`)) === revision
    if (repo.remote !== undefined) await operators.fetch()
    const tip = await operators.revision(
      repo.remote === undefined ? `refs/heads/${repo.branch}` : `refs/remotes/${repo.remote}/${repo.branch}`,
    )
    return tip !== undefined && operators.isAncestor(revision, tip)
  }

  /** The group's commits on top of the branch, examined; undefined: the branch was moved meanwhile. */
  const propose = async (
    folder: string,
    directory: string,
    operators: OperatorsRepository,
    room: Room,
    { signal, progress }: SyncOptions,
  ): Promise<(Proposal & { pack: string }) | { revision: string; base: string; commits: 0 } | undefined> => {
    const { name, repo } = known(folder)
    progress?.({ progress: 0, total: steps, message: 'looking at the branch' })
    if (repo.remote !== undefined) await operators.fetch()
    const base = await refresh(folder, operators, signal)
    progress?.({ progress: 1, total: steps, message: 'rebasing' })
    const pack = join(directory, 'pack')
    const report = await asked(folder, syncScript, room, signal, { path: pack, most: largestPack })
    const problem = refusalFor(report, folder, repo)
    if (problem) throw problem
    // The mirror was brought up by another group meanwhile: what was made is made of something else.
    if (report.facts.get('base') !== base) return undefined
    if (report.state === 'nothing') return { revision: base, base, commits: 0 }
    const revision = report.facts.get('head')
    if (!isRevision(revision)) throw new ServiceRefusal('service_failed', 'The worktree names no revision.')
    progress?.({ progress: 2, total: steps, message: 'examining the commits' })
    const mirror = mirrorPath(layout, name)
    return { ...(await examine({ directory, mirror, pack, revision, base, signal })), pack }
  }

  const attempt = async (
    folder: string,
    id: string,
    directory: string,
    operators: OperatorsRepository,
    room: Room,
    syncing: SyncOptions,
  ): Promise<SyncAnswer | undefined> => {
    const { name, repo } = known(folder)
    const { signal, progress, approved } = syncing
    const proposal = await propose(folder, directory, operators, room, syncing)
    if (!proposal) return undefined
    const { revision, base } = proposal
    if (approved !== undefined && approved !== revision) {
      throw new ServiceRefusal(
        'conflict',
        `Nothing was merged: ${approved.slice(0, 12)} was approved, and it would be ${revision.slice(0, 12)} by now, as your commits or ${repo.branch} have changed. Sync again to have it approved anew.`,
      )
    }
    if (!('pack' in proposal)) {
      return {
        merged: false,
        commits: 0,
        revision: base,
        message: `There is nothing to merge: your worktree has no commits that ${repo.branch} does not have.`,
      }
    }
    const { pack } = proposal
    fault('sync_examined')
    if (repo.test !== undefined) progress?.({ progress: 3, total: steps, message: 'running the check' })
    await test(folder, directory, proposal, room, signal)
    signal.throwIfAborted()
    const record: SyncRecord = {
      ...{ folder, repo: name, policy: repo.policy, revision, base, commits: proposal.commits },
      subjects: [...proposal.subjects],
      isTold: false,
    }
    await records.write(id, record)
    fault('sync_recorded')
    if (repo.policy === 'merge') options.merges(folder, name, othersOf(folder, name))
    // From here on it is not broken off: that could leave the operator's checkout half done.
    const steady = operatorsRepository(repo, new AbortController().signal)
    const remark = await deliver({ folder, repo, operators: steady, pack, revision, fault })
    if (remark === undefined) return undefined
    fault('sync_delivered')
    return conclude(folder, record, id, remark, operators, room, syncing)
  }

  const roomFor = async (folder: string, signal: AbortSignal): Promise<Room> => {
    const roomOf = await heeding(rooms.promise, signal)
    if (!roomOf) throw new ServiceRefusal('unavailable', 'No agents are run here, so there are no worktrees.')
    return roomOf(folder)
  }

  /** Tries until the branch holds still, each time in a directory of its own. */
  const tryAgain = async <T>(
    name: string,
    branch: string,
    work: (directory: string) => Promise<T | undefined>,
  ): Promise<T> => {
    for (let left = attempts; left > 0; left--) {
      const directory = join(scratch, `${name}-${randomUUID()}`)
      await mkdir(directory, { recursive: true, mode: 0o755 })
      try {
        const answer = await work(directory)
        if (answer !== undefined) return answer
      } finally {
        await removeTree(directory).catch(error =>
          log.warn({ err: error, directory }, 'what a sync left could not be removed'),
        )
      }
    }
    throw new ServiceRefusal(
      'wrong_state',
      `${branch} was moved by somebody else ${attempts} times while your commits were put on top of it. Sync again.`,
    )
  }

  /** What a sync would merge, for whoever is asked whether it may. The worktree is rebased by it, as by the sync itself. */
  const evidence = async (_: unknown, context: EvidenceContext) => {
    const { folder } = context.group
    const { name, repo } = known(folder)
    const signal = AbortSignal.any([context.signal, leaving.signal])
    await swept
    const room = await roomFor(folder, signal)
    const proposal = await turns.take(`sync ${name}`, signal, async () => {
      const operators = operatorsRepository(repo, signal)
      await ensure({ folder }, room, signal)
      return tryAgain(name, repo.branch, directory => propose(folder, directory, operators, room, { signal }))
    })
    const { revision, base, commits } = proposal
    return {
      fields: { base, revision, commits, ...('pack' in proposal ? { newest: proposal.subjects } : {}) },
    }
  }

  const synced = async (folder: string, id: string, syncing: SyncOptions): Promise<SyncAnswer> => {
    const { name, repo } = known(folder)
    const { signal } = syncing
    const room = await roomFor(folder, signal)
    return turns.take(`sync ${name}`, signal, async () => {
      const operators = operatorsRepository(repo, signal)
      const earlier = await records.read(id)
      if (earlier && earlier.folder === folder && (await isDelivered(folder, earlier, operators))) {
        const { revision } = earlier
        const remark =
          repo.policy === 'merge' && repo.remote !== undefined
            ? await follow({ folder, repo, operators, revision, fault })
            : ''
        return conclude(folder, earlier, id, remark, operators, room, syncing)
      }
      await records.prune(Date.now())
      await ensure({ folder }, room, signal)
      return tryAgain(name, repo.branch, directory =>
        attempt(folder, id, directory, operators, room, syncing),
      )
    })
  }

  const sync = async (folder: string, syncing: SyncOptions): Promise<SyncAnswer> => {
    const { name } = known(folder)
    const id = syncing.id ?? randomUUID()
    const signal = AbortSignal.any([syncing.signal, leaving.signal])
    try {
      return await synced(folder, id, { ...syncing, signal })
    } catch (error) {
      if (signal.aborted) throw error
      const refusal =
        error instanceof ServiceRefusal
          ? error
          : new ServiceRefusal('service_failed', error instanceof Error ? error.message : String(error))
      if (error !== refusal) log.error({ err: error, group: folder }, 'a sync failed')
      audit.append({
        at: Date.now(),
        group: folder,
        actor: syncing.actor ?? 'agent',
        action: 'sync_worktree',
        summary: `sync with ${name}`,
        outcome: 'refused',
        decidedBy: 'host',
        reason: `${refusal.code}: ${visibleLine(refusal.message.split('\n')[0] ?? '', 500)}`,
        requestId: syncing.requestId ?? null,
      })
      throw refusal
    }
  }

  /** Scratch of a process that was killed. */
  const swept = removeTree(scratch).catch(error =>
    log.warn({ err: error }, 'what an earlier process left of a sync could not be removed'),
  )

  const begun = (folder: string, syncing: SyncOptions): Promise<SyncAnswer> => {
    const under = swept.then(() => sync(folder, syncing))
    underWay.add(under)
    return under.finally(() => underWay.delete(under))
  }

  const longestTest = Math.max(
    0,
    ...Object.values(config.repos).map(repo => (repo.test === undefined ? 0 : repo.testMs)),
  )

  return {
    of,
    all: () => Object.keys(config.groups).flatMap(folder => of(folder) ?? []),
    async ensure(group, room) {
      if (repoOf(group.folder)) await ensure(group, room, AbortSignal.timeout(restMs))
    },
    seenBy(folder, { isolated }) {
      const found = repoOf(folder)
      if (!found) return undefined
      const { worktree, mirror } = placesFor(folder, found.name, isolated)
      return {
        mounts: mountsOf(folder, found.name),
        environment: { HATCHWAY_PROJECT_DIR: worktree, GIT_CONFIG_SYSTEM: join(mirror, agentSettings) },
      }
    },
    sync: begun,
    work: {
      name: 'sync_worktree',
      repeatable: true,
      // Its turn may come after another's check, and the branch may move during its own.
      timeoutMs: restMs + 3 * longestTest,
      evidence,
      call: (input, { group, seq, requestId, signal, progress }) =>
        begun(group.folder, {
          ...{ id: recordId(seq, requestId), requestId, signal, progress },
          approved: approvedIn(input),
        }),
    },
    opened: value => rooms.resolve(value),
    async stop() {
      leaving.abort(new Error('The host is stopping.'))
      await Promise.race([Promise.allSettled(underWay), pause(farewellMs)])
    },
  }
}

const approvedSchema = z.object({ approved: z.object({ revision: z.string() }).optional() })
export const approvedIn = (input: unknown): string | undefined =>
  approvedSchema.parse(input).approved?.revision

/** Also by the request's own id: a database from a backup counts from where it was. */
const recordId = (seq: number, requestId: string) => `${seq}-${requestId.replaceAll(/[^\w-]/g, '_')}`

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms).unref())

const hasTip = (mirror: string, { branch }: Repo): boolean =>
  lstatSync(join(mirror, 'refs', 'heads', branch), { throwIfNoEntry: false }) !== undefined

const heeding = async <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> => {
  signal.throwIfAborted()
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([promise, stopped.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
