import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import { z } from 'zod'
import { createWorkQueue } from '../../base/keyed-queue.ts'
import { abortable, within } from '../../base/pause.ts'
import { removeTree } from '../../base/remove-tree.ts'
import type { Work } from '../../commands/service-tools.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import type { Room, RunMounts } from '../../runs/hooks.ts'
import type { Sandbox } from '../../sandboxes/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { SyncAnswer } from './answers.ts'
import { agentMounts, createClones } from './clones.ts'
import { operatorsRepository } from './operator.ts'
import { openRecords } from './records.ts'
import type { GroupRepository, Repositories } from './repositories.ts'
import type { Repos } from './settings.ts'
import { createSyncs } from './sync.ts'
import type { Syncing, SyncOptions } from './syncing.ts'
import { visibleLine } from './words.ts'

/**
 * What groups have of repositories. A group with `repo` has a clone of its own that its agent may do anything with, and
 * a mirror of the branch, read-only, whose objects the clone uses. A sync goes through these:
 *
 *   look      the mirror is brought up to the operator's branch, or the remote's (clones.ts)
 *   rebase    in a sandbox: the group's commits are put on top of it; they come out as a pack (propose.ts, scripts.ts)
 *   examine   the host takes the pack into a repository of its own, and looks at everything in it (proposal.ts)
 *   test      the operator's command runs in a sandbox, in a tree of its own (merge-test.ts)
 *   deliver   the branch is moved, if it is still where it was; if not, all over again (delivery.ts)
 *   tell      the other groups of the repository, and the audit log (conclude.ts)
 *
 * Git is never run on the host in a directory that an agent can write to: whoever writes its settings chooses what it
 * runs. A host that dies anywhere in between finds by its records whether the delivery was made.
 */
export interface Worktrees {
  /** makes what the group's agent is to find; throws with the reason if that cannot be */
  prepare(group: Pick<Group, 'folder'>, room: Room): Promise<void>
  /** what its agent's sandbox gets beside everything else; undefined: nothing */
  mounts(folder: string, sandbox: Pick<Sandbox, 'isolated'>): RunMounts | undefined
  /** throws a `ServiceRefusal` for a clear no */
  sync(folder: string, options: SyncOptions): Promise<SyncAnswer>
  work: Work
  /** agents are run from now on, and this is where; undefined: none are */
  opened(rooms: Rooms | undefined): void
  /** what is under way is told to stop, and found again at the next start */
  stop(): Promise<void>
}

type Rooms = (folder: string) => Promise<Room>
type Host = BuiltInHost<Repos, string>

/** what a sync may take beside the operator's test */
const restMs = 120_000
const farewellMs = 2000

export function createWorktrees(host: Host, repositories: Repositories): Worktrees {
  const { layout, owners, log } = host
  const queue = createWorkQueue()
  const scratch = join(layout.repos, '.syncs')
  const clones = createClones({ layout, owners, queue, log })
  const records = openRecords(join(layout.state, 'syncs'))
  const syncs = createSyncs({ host, repositories, clones, records, scratch })
  const leaving = new AbortController()
  const underWay = new Set<Promise<SyncAnswer>>()
  const rooms = Promise.withResolvers<Rooms | undefined>()
  /** what a process that was killed has left */
  const swept = removeTree(scratch).catch(error =>
    log.warn({ err: error }, 'what an earlier process left of a sync could not be removed'),
  )

  /** Does something with a group's clone when its repository is free. */
  const inTurn = async <T>(
    group: GroupRepository,
    options: SyncOptions,
    work: (syncing: Syncing) => Promise<T>,
  ): Promise<T> => {
    await swept
    const { signal } = options
    const roomOf = await abortable(rooms.promise, signal)
    if (!roomOf) throw new ServiceRefusal('unavailable', 'No agents are run here, so there are no worktrees.')
    const room = await roomOf(group.folder)
    return queue.run(`sync ${group.name}`, signal, () =>
      work({ ...options, group, room, operators: operatorsRepository(group.repo, signal) }),
    )
  }

  const sync = async (folder: string, given: SyncOptions): Promise<SyncAnswer> => {
    const group = repositories.get(folder)
    const id = given.id ?? randomUUID()
    const options = { ...given, signal: AbortSignal.any([given.signal, leaving.signal]) }
    try {
      return await inTurn(group, options, syncing => syncs.perform(syncing, id))
    } catch (error) {
      if (options.signal.aborted) throw error
      throw noteRefusal(error, group, options, host)
    }
  }

  const begin = (folder: string, options: SyncOptions): Promise<SyncAnswer> => {
    const begun = sync(folder, options)
    underWay.add(begun)
    return begun.finally(() => underWay.delete(begun))
  }

  return {
    async prepare({ folder }, room) {
      const group = repositories.find(folder)
      if (group) await clones.prepare(group, room, AbortSignal.timeout(restMs))
    },
    mounts(folder, sandbox) {
      const group = repositories.find(folder)
      return group && agentMounts(group, sandbox)
    },
    sync: begin,
    work: {
      name: 'sync_worktree',
      repeatable: true,
      // Its turn may come after another's test, and the branch may move during its own.
      timeoutMs: restMs + 3 * longestTest(host.settings),
      /** What a sync would merge, for whoever is asked whether it may. */
      async evidence(_, { group: { folder }, signal }) {
        const options = { signal: AbortSignal.any([signal, leaving.signal]) }
        const proposal = await inTurn(repositories.get(folder), options, syncs.preview)
        const { revision, base, commits } = proposal
        return {
          fields: { base, revision, commits, ...('pack' in proposal ? { newest: proposal.subjects } : {}) },
        }
      },
      call: (input, { group, seq, requestId, signal, progress }) =>
        begin(group.folder, {
          ...{ id: recordId(seq, requestId), requestId, signal, progress },
          approved: approvedIn(input),
        }),
    },
    opened: rooms.resolve,
    async stop() {
      leaving.abort(new Error('The host is stopping.'))
      await within(farewellMs, Promise.allSettled(underWay))
    },
  }
}

/** What went wrong, as a refusal, once the audit log has it. */
function noteRefusal(
  error: unknown,
  { folder, name }: GroupRepository,
  { actor = 'agent', requestId = null }: SyncOptions,
  { store, log, now }: Host,
): ServiceRefusal {
  const refusal =
    error instanceof ServiceRefusal
      ? error
      : new ServiceRefusal('service_failed', error instanceof Error ? error.message : String(error))
  if (error !== refusal) log.error({ err: error, group: folder }, 'a sync failed')
  store.audit.append({
    at: now().getTime(),
    group: folder,
    actor,
    action: 'sync_worktree',
    summary: `sync with ${name}`,
    outcome: 'refused',
    decidedBy: 'host',
    reason: `${refusal.code}: ${visibleLine(refusal.message.split('\n')[0] ?? '', 500)}`,
    requestId,
  })
  return refusal
}

const longestTest = (repos: Repos): number =>
  Math.max(0, ...Object.values(repos).map(repo => (repo.test === undefined ? 0 : repo.testMs)))

const approvedSchema = z.object({ approved: z.object({ revision: z.string() }).optional() })
export const approvedIn = (input: unknown): string | undefined =>
  approvedSchema.parse(input).approved?.revision

/** Also by the request's own id: a database from a backup counts from where it was. */
const recordId = (seq: number, requestId: string) => `${seq}-${requestId.replaceAll(/[^\w-]/g, '_')}`
