import { type Refused, refused } from '../operations/outcome.ts'
import type { OperationContext } from '../operations/types.ts'

/** Why the group may not have another request open, if so. */
export function tooManyRequests(
  folder: string,
  { transaction, limits }: Pick<OperationContext, 'transaction' | 'limits'>,
): Refused | undefined {
  if (transaction.countOpenRequests(folder) < limits.openRequests) return undefined
  return refused(
    'quota_exceeded',
    `The group has ${limits.openRequests} requests that are not answered yet. Wait for answers before asking more.`,
  )
}
