import type { Task } from '@hatchway/protocol'
import { type Refused, refused } from '../../base/outcome.ts'
import { largeMessageBytes } from '../../store/large-messages.ts'
import type { Transaction } from '../../store/types.ts'
import type { CommandContext } from '../types.ts'

type Asked = Pick<CommandContext, 'transaction' | 'limits'>

/** Why the group may not have another request open, if so. */
export function tooManyRequests(folder: string, { transaction, limits }: Asked): Refused | undefined {
  const { count, bytes } = transaction.openRequestSize(folder)
  if (count >= limits.openRequests) {
    return refused(
      'quota_exceeded',
      `The group has ${limits.openRequests} requests that are not answered yet. Wait for answers before asking more.`,
    )
  }
  if (bytes >= limits.openRequestBytes) {
    return refused(
      'quota_exceeded',
      `The group’s requests that are not answered yet hold ${bytes} bytes, and ${limits.openRequestBytes} is the limit. Wait for answers, or ask for less at once.`,
    )
  }
  return undefined
}

type Size = Pick<Task, 'prompt' | 'script' | 'job'>

const bytesOf = ({ prompt, script, job }: Size): number =>
  Buffer.byteLength(prompt) +
  Buffer.byteLength(script ?? '') +
  (job ? Buffer.byteLength(JSON.stringify(job)) : 0)

/** Why the group may not have this task, if so. `before` is what it replaces. */
export function tooManyTasks(
  folder: string,
  task: Size,
  {
    transaction,
    limits,
  }: Pick<CommandContext, 'limits'> & { transaction: Pick<Transaction, 'openTaskSize'> },
  before?: Size,
): Refused | undefined {
  const { count, bytes } = transaction.openTaskSize(folder)
  if (!before && count >= limits.openTasks) {
    return refused(
      'quota_exceeded',
      `The group has ${limits.openTasks} open tasks, which is all it may have. Cancel some first.`,
    )
  }
  const more = bytesOf(task) - (before ? bytesOf(before) : 0)
  // Whoever makes a task smaller is on the way below the limit.
  if (more > 0 && bytes + more > limits.openTaskBytes) {
    return refused(
      'quota_exceeded',
      `The group’s open tasks would hold ${bytes + more} bytes, and ${limits.openTaskBytes} is the limit. Cancel some first, or put long texts into files of the group’s folder.`,
    )
  }
  return undefined
}

/** Why the group may not say so much, if so. */
export function tooManyMessageBytes(
  folder: string,
  bytes: number,
  { transaction, limits }: Asked,
): Refused | undefined {
  if (bytes <= largeMessageBytes) return undefined
  // The oldest are forgotten every minute; until then there is as much room again.
  const most = 2 * limits.messageBytes
  if (transaction.largeMessageBytes(folder) + bytes <= most) return undefined
  return refused(
    'quota_exceeded',
    `The group’s large messages would hold more than ${most} bytes. Wait until the oldest are delivered and forgotten, or send a file.`,
  )
}
