import { join } from 'node:path'
import { ServiceRefusal } from '../../services/define.ts'
import { refusalFor } from './answers.ts'
import type { Clones } from './clones.ts'
import { examine, isRevision, largestPack, type Proposal } from './proposal.ts'
import { syncScript } from './scripts.ts'
import { progressTo, type Syncing } from './syncing.ts'

/** `pack`: the file with the commits; without it there is nothing to merge. */
export type Proposed = (Proposal & { pack: string }) | { revision: string; base: string; commits: 0 }

/** The group's commits on top of the branch, examined; undefined: the branch was moved meanwhile. */
export async function propose(
  syncing: Syncing,
  clones: Clones,
  directory: string,
): Promise<Proposed | undefined> {
  const { group, operators, room, signal } = syncing
  const { folder, mirror, repo } = group
  progressTo(syncing, 0, 'looking at the branch')
  if (repo.remote !== undefined) await operators.fetch()
  const base = await clones.refresh(group, operators, signal)
  progressTo(syncing, 1, 'rebasing')
  const pack = join(directory, 'pack')
  const report = await clones.run(group, syncScript, room, signal, { path: pack, most: largestPack })
  const problem = refusalFor(report, folder, repo)
  if (problem) throw problem
  // The mirror was brought up by another group meanwhile: what was made is made of something else.
  if (report.facts.get('base') !== base) return undefined
  if (report.state === 'nothing') return { revision: base, base, commits: 0 }
  const revision = report.facts.get('head')
  if (!isRevision(revision)) throw new ServiceRefusal('service_failed', 'The worktree names no revision.')
  progressTo(syncing, 2, 'examining the commits')
  return { ...(await examine({ directory, mirror, pack, revision, base, signal })), pack }
}
