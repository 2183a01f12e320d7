import type { IncomingFile, ReplyAddress } from './dialect.ts'
import { type Refusal, refusal } from './errors.ts'
import { requestIdSchema } from './identifiers.ts'

/** A file's request id, read: where its answer goes, or what is wrong with it. Without an id it is neither. */
export interface Request {
  reply?: ReplyAddress
  fault?: Refusal
}

const none: Request = {}

const addressed = (type: unknown, id: string): ReplyAddress => {
  if (type === 'sync_worktree_to_main') return { directory: 'merge_results', id, shape: 'success' }
  if (typeof type === 'string') {
    if (type.startsWith('x_')) return { directory: 'x_results', id, shape: 'success' }
    if (type.startsWith('security:')) return { directory: 'responses', id, shape: 'decision' }
  }
  return { directory: 'responses', id, shape: 'result' }
}

/**
 * The request id of a file in anyone's dialect but Hatchway's own. The id becomes a file name, so one that does not
 * fit the pattern is refused and gets no answer.
 */
export const requestOf = (body: IncomingFile['body']): Request => {
  const name = body.request_id == null ? 'requestId' : 'request_id'
  const id = body[name]
  if (id == null) return none
  const checked = requestIdSchema.safeParse(id)
  if (checked.success) return { reply: addressed(body.type, checked.data) }
  return { fault: refusal('invalid_field', `${name}: must be 1 to 128 letters, digits, "-" or "_"`) }
}
