import { join } from 'node:path'
import { ownedDirectory } from '../../base/layout.ts'
import type { Owners } from '../../base/owners.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { mountsOf, placesFor } from './clones.ts'
import { tryInside } from './inside.ts'
import { agentSettings } from './mirror.ts'
import type { Proposal } from './proposal.ts'
import { testScript } from './scripts.ts'
import type { Syncing } from './syncing.ts'

const insideProposal = '/workspace/proposal'

/** The operator's command, in a sandbox, on a tree of its own with what would become of the branch. Throws if it fails. */
export async function testMerge(
  { group, room, signal }: Syncing,
  proposal: Proposal,
  directory: string,
  owners: Owners,
): Promise<void> {
  const { folder, mirror, repo } = group
  if (repo.test === undefined) return
  const tree = join(directory, 'tree')
  ownedDirectory(tree, owners(folder))
  const places = placesFor({ worktree: tree, mirror }, room.sandbox)
  const { isOk, how, output } = await tryInside(room, {
    folder,
    script: testScript,
    mounts: [
      ...mountsOf({ worktree: tree, mirror }),
      { from: join(proposal.objects, 'pack'), to: `${insideProposal}/pack`, writable: false },
    ],
    workingDirectory: places.worktree,
    environment: {
      GIT_CONFIG_SYSTEM: join(places.mirror, agentSettings),
      WORKTREE: places.worktree,
      MIRROR: places.mirror,
      PROPOSAL: room.sandbox.isolated ? insideProposal : proposal.objects,
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
