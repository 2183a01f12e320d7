import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../../base/remove-tree.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { SyncAnswer } from './answers.ts'
import type { Clones } from './clones.ts'
import { conclude, isDelivered } from './conclude.ts'
import { deliver, follow } from './delivery.ts'
import { testMerge } from './merge-test.ts'
import { operatorsRepository } from './operator.ts'
import { type Proposed, propose } from './propose.ts'
import type { Records, SyncRecord } from './records.ts'
import { type Repositories, sharedRepository } from './repositories.ts'
import { progressTo, type Syncing } from './syncing.ts'

/** One sync of a group, from its clone to the branch. Those of one repository come one after another. */
export interface Syncs {
  /** what a sync would merge; the clone is rebased by it, as by the sync itself */
  preview(syncing: Syncing): Promise<Proposed>
  /** `id` names it over restarts: what an earlier process has delivered is not delivered again */
  perform(syncing: Syncing, id: string): Promise<SyncAnswer>
}

/** A branch that moves faster than this is not ours to run after. */
const attempts = 5

export function createSyncs(parts: {
  host: Pick<BuiltInHost, 'store' | 'owners' | 'share' | 'tellAgent' | 'fault' | 'log' | 'now'>
  repositories: Repositories
  clones: Clones
  records: Records
  /** where the files of a sync are put while it is under way */
  scratch: string
}): Syncs {
  const { host, repositories, clones, records } = parts
  const { fault, log } = host

  /** Tries until the branch holds still, each time in a directory of its own. */
  const untilItHoldsStill = async <T>(
    { group: { name, repo } }: Syncing,
    work: (directory: string) => Promise<T | undefined>,
  ): Promise<T> => {
    for (let left = attempts; left > 0; left--) {
      const directory = join(parts.scratch, `${name}-${randomUUID()}`)
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
      `${repo.branch} was moved by somebody else ${attempts} times while your commits were put on top of it. Sync again.`,
    )
  }

  /** Undefined: the branch was moved meanwhile. */
  const attempt = async (
    syncing: Syncing,
    id: string,
    directory: string,
  ): Promise<SyncAnswer | undefined> => {
    const { group, signal } = syncing
    const { folder, name, repo } = group
    const proposal = await propose(syncing, clones, directory)
    if (!proposal) return undefined
    refuseUnapproved(syncing, proposal)
    if (!('pack' in proposal)) return nothingToMerge(syncing, proposal)
    const { pack, revision, base, commits } = proposal
    fault('sync_examined')
    if (repo.test !== undefined) progressTo(syncing, 3, 'running the check')
    await testMerge(syncing, proposal, directory, host.owners)
    signal.throwIfAborted()
    const record: SyncRecord = {
      ...{ folder, repo: name, policy: repo.policy, revision, base, commits },
      subjects: [...proposal.subjects],
      isTold: false,
    }
    await records.write(id, record)
    fault('sync_recorded')
    if (repo.policy === 'merge') host.share(folder, sharedRepository(name), repositories.othersOf(group))
    // From here on it is not broken off: that could leave the operator's checkout half done.
    const steady = operatorsRepository(repo, new AbortController().signal)
    const remark = await deliver({ folder, repo, operators: steady, pack, revision, fault })
    if (remark === undefined) return undefined
    fault('sync_delivered')
    return conclude(syncing, { id, record, remark }, parts)
  }

  /** What an earlier process has delivered and could not conclude. */
  const resume = async (syncing: Syncing, id: string): Promise<SyncAnswer | undefined> => {
    const { group, operators } = syncing
    const { folder, repo } = group
    const record = await records.read(id)
    if (record?.folder !== folder || !(await isDelivered(syncing, record))) return undefined
    const { revision } = record
    const remark =
      repo.policy === 'merge' && repo.remote !== undefined
        ? await follow({ folder, repo, operators, revision, fault })
        : ''
    return conclude(syncing, { id, record, remark }, parts)
  }

  return {
    async preview(syncing) {
      await clones.prepare(syncing.group, syncing.room, syncing.signal)
      return untilItHoldsStill(syncing, directory => propose(syncing, clones, directory))
    },
    async perform(syncing, id) {
      const answer = await resume(syncing, id)
      if (answer) return answer
      await records.prune(host.now().getTime())
      await clones.prepare(syncing.group, syncing.room, syncing.signal)
      return untilItHoldsStill(syncing, directory => attempt(syncing, id, directory))
    },
  }
}

function refuseUnapproved({ group, approved }: Syncing, { revision }: Proposed): void {
  if (approved === undefined || approved === revision) return
  throw new ServiceRefusal(
    'conflict',
    `Nothing was merged: ${approved.slice(0, 12)} was approved, and it would be ${revision.slice(0, 12)} by now, as your commits or ${group.repo.branch} have changed. Sync again to have it approved anew.`,
  )
}

const nothingToMerge = ({ group }: Syncing, { base }: Proposed): SyncAnswer => ({
  merged: false,
  commits: 0,
  revision: base,
  message: `There is nothing to merge: your worktree has no commits that ${group.repo.branch} does not have.`,
})
