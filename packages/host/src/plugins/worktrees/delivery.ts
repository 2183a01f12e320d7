import type { Fault } from '../../base/fault.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { branchOf } from './answers.ts'
import type { OperatorsRepository } from './operator.ts'
import type { Repo } from './settings.ts'

/** The last step of a sync: what is sound goes to where the operator has it. */
export interface Delivery {
  folder: string
  repo: Repo
  operators: OperatorsRepository
  /** the objects, as they came */
  pack: string
  revision: string
  fault: Fault
}

/** What is left to say beside that it is done; undefined: the branch has moved, begin again. */
export const deliver = (delivery: Delivery): Promise<string | undefined> =>
  delivery.repo.policy === 'merge' ? merge(delivery) : offer(delivery)

/**
 *   no remote   the operator's branch moves, if it is where it was when we looked
 *   a remote    the remote's branch moves, on the same condition; the operator's follows
 */
async function merge(delivery: Delivery): Promise<string | undefined> {
  const { repo, operators, pack, revision, fault } = delivery
  const head = `refs/heads/${repo.branch}`
  const local = await operators.revision(head)
  const checkout = await operators.checkout(repo.branch)
  if (checkout !== undefined && !(await operators.isClean(checkout))) {
    throw new ServiceRefusal(
      'wrong_state',
      `The operator’s checkout of ${repo.branch} has changes that are not committed, so nothing was merged. Ask for it to be put in order, then sync again.`,
    )
  }
  await operators.take(pack)
  if (local !== undefined && !(await operators.isAncestor(local, revision))) {
    if (repo.remote === undefined) return undefined
    throw new ServiceRefusal(
      'wrong_state',
      `The operator’s ${repo.branch} has commits that ${repo.remote} does not have, so nothing was merged. Ask for them to be pushed, then sync again.`,
    )
  }
  if (repo.remote === undefined) return (await advance(delivery, local, checkout)) ? '' : undefined
  if (!(await operators.push(repo.branch, revision))) return undefined
  fault('sync_pushed')
  return follow(delivery)
}

/** The remote has it. Whether the operator's own branch can follow changes nothing about that. */
export async function follow(delivery: Omit<Delivery, 'pack'>): Promise<string> {
  const { repo, operators, revision } = delivery
  try {
    const local = await operators.revision(`refs/heads/${repo.branch}`)
    if (local !== undefined && (await operators.isAncestor(revision, local))) return ''
    const checkout = await operators.checkout(repo.branch)
    const canFollow = local === undefined || (await operators.isAncestor(local, revision))
    if (canFollow && (checkout === undefined || (await operators.isClean(checkout)))) {
      if (await advance(delivery, local, checkout)) return ''
    }
    return ` The operator’s own ${repo.branch} could not follow.`
  } catch (error) {
    if (!(error instanceof ServiceRefusal)) throw error
    return ` The operator’s own ${repo.branch} could not follow: ${error.message}`
  }
}

const advance = (
  { repo, operators, revision }: Omit<Delivery, 'pack'>,
  local: string | undefined,
  checkout: string | undefined,
): Promise<boolean> =>
  checkout === undefined
    ? operators.move(repo.branch, revision, local)
    : operators.forward(checkout, revision)

/** A branch for review, which is the group's own: it is replaced each time. */
async function offer({
  folder,
  repo,
  operators,
  pack,
  revision,
  fault,
}: Delivery): Promise<string | undefined> {
  const branch = branchOf(folder)
  const before = await operators.revision(`refs/heads/${branch}`)
  if ((await operators.checkout(branch)) !== undefined) {
    throw new ServiceRefusal(
      'wrong_state',
      `The operator has ${branch} checked out, so it was not replaced. Ask for another branch to be checked out, then sync again.`,
    )
  }
  await operators.take(pack)
  const there = repo.remote === undefined ? revision : await operators.onRemote(branch)
  if (there !== revision) {
    // One that was reviewed and removed there begins anew.
    if (!(await operators.push(branch, revision, there === undefined ? '' : (before ?? '')))) {
      throw new ServiceRefusal(
        'wrong_state',
        `${repo.remote} has a ${branch} that was changed by somebody else, so it was not replaced. Ask for it to be removed there, or fetched to the operator’s own ${branch}, then sync again.`,
      )
    }
    fault('sync_pushed')
  }
  return (await operators.move(branch, revision, before)) ? '' : undefined
}
