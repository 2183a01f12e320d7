import type { BuiltInHost } from '../../plugin-api/types.ts'
import { branchOf, countOf, type SyncAnswer } from './answers.ts'
import type { Clones } from './clones.ts'
import type { Records, SyncRecord } from './records.ts'
import type { Repositories } from './repositories.ts'
import { fetchScript } from './scripts.ts'
import type { Syncing } from './syncing.ts'

type Host = Pick<BuiltInHost, 'store' | 'tellAgent' | 'fault' | 'log' | 'now'>

/** Whether an earlier process has delivered it. */
export async function isDelivered(
  { group: { folder, repo }, operators }: Syncing,
  { revision }: SyncRecord,
): Promise<boolean> {
  if ((await operators.revision(revision)) === undefined) return false
  if (repo.policy === 'branch')
    return (await operators.revision(`refs/heads/${branchOf(folder)}`)) === revision
  if (repo.remote !== undefined) await operators.fetch()
  const tip = await operators.revision(
    repo.remote === undefined ? `refs/heads/${repo.branch}` : `refs/remotes/${repo.remote}/${repo.branch}`,
  )
  return tip !== undefined && operators.isAncestor(revision, tip)
}

/** What is left to do once the commits are delivered. All of it can be done again without harm. */
export async function conclude(
  syncing: Syncing,
  delivered: { id: string; record: SyncRecord; remark: string },
  parts: { host: Host; repositories: Repositories; clones: Clones; records: Records },
): Promise<SyncAnswer> {
  const { group, operators, room, signal } = syncing
  const { id, record, remark } = delivered
  const { host, repositories, clones, records } = parts
  if (!record.isTold) {
    if (record.policy === 'merge') {
      const text = newsOf(syncing, record)
      for (const other of repositories.othersOf({ folder: group.folder, name: record.repo })) {
        host.tellAgent(other, `sync:${record.repo}:${record.revision}`, text)
      }
    }
    audit(syncing, record, host)
    host.fault('sync_told')
    await records.write(id, { ...record, isTold: true })
  }
  try {
    await clones.refresh(group, operators, signal)
    await clones.run(group, fetchScript, room, signal)
  } catch (error) {
    host.log.warn({ err: error, group: group.folder }, 'a worktree was synced, and does not know it yet')
  }
  return answerTo(syncing, record, remark)
}

/** For the other groups that work on the repository. */
function newsOf({ group: { folder, repo } }: Syncing, record: SyncRecord): string {
  const subjects = record.subjects.map(subject => `\n- ${subject}`).join('')
  const more = record.commits > record.subjects.length ? '\n- …' : ''
  return `${folder} has merged ${countOf(record.commits)} into ${repo.branch} of ${record.repo}, now ${record.revision.slice(0, 12)}. Your next sync puts your commits on top of it; git fetch in your worktree shows it. What the commits say of themselves:${subjects}${more}`
}

function audit(
  { group: { folder, repo }, actor = 'agent', requestId = null }: Syncing,
  { policy, repo: name, revision, base, commits }: SyncRecord,
  { store, now }: Host,
): void {
  const where = policy === 'merge' ? repo.branch : branchOf(folder)
  store.audit.append({
    at: now().getTime(),
    group: folder,
    actor,
    action: 'sync_worktree',
    summary: `${countOf(commits)} on ${where} of ${name}`,
    outcome: 'merged',
    decidedBy: 'host',
    requestId,
    details: { repo: name, policy, revision, base, commits },
  })
}

function answerTo(
  { group: { folder, repo } }: Syncing,
  { policy, revision, commits }: SyncRecord,
  remark: string,
): SyncAnswer {
  const short = revision.slice(0, 12)
  const pushed = repo.remote === undefined ? '' : `, and ${repo.remote} has it`
  return policy === 'merge'
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
