import { type Outcome, type Payload, payloads } from '@hatchway/protocol'
import { done, type Refused, refused } from '../base/outcome.ts'
import { forbiddenBy, reachOfLabels, taintOfLabels } from '../guard/gates.ts'
import type { NewRequest, RequestRow } from '../store/types.ts'
import { isAllowed } from './service-tools.ts'
import { type CommandContext, defineCommand, local, type Target } from './types.ts'

/** Whoever asks acts on nobody but itself. */
export const self = ({ actor }: CommandContext): Target =>
  actor.kind === 'group' ? { folder: actor.group.folder } : 'host'

/** Why the group may not have another request open, if so. */
export function tooManyRequests(
  folder: string,
  { transaction, limits }: Pick<CommandContext, 'transaction' | 'limits'>,
): Refused | undefined {
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

/** Stores a request whose answer follows: within this commit, so that it cannot be lost, and is asked once. */
export function storeRequest(
  about: Pick<NewRequest, 'kind' | 'tool' | 'input'> & { timeoutMs: number },
  context: CommandContext,
): RequestRow | Refused {
  const { actor, request, transaction, now, effect } = context
  const { timeoutMs, ...asked } = about
  const reply = request?.reply
  if (actor.kind !== 'group' || !request || !reply) {
    return refused('invalid_field', 'id: is required, as the answer has to go somewhere')
  }
  const { folder } = actor.group
  const tooMany = tooManyRequests(folder, context)
  if (tooMany) return tooMany
  const createdAt = now.getTime()
  const { seq } = request
  const row: NewRequest = { ...asked, seq, reply, group: folder, createdAt, expiresAt: createdAt + timeoutMs }
  transaction.insertRequest(row)
  const stored: RequestRow = { ...row, status: 'waiting', outcome: null }
  effect({ kind: 'request_stored', request: stored })
  return stored
}

/**
 * Has work of the host's own done that takes its time. Unlike a request it may come without an id: then nobody waits,
 * and it is done all the same.
 */
export function storeWork(
  about: { name: string; input: Record<string, unknown>; otherwise: string },
  context: CommandContext,
): Refused | null {
  const { actor, request, transaction, now, effect, host } = context
  const timeoutMs = host?.workMs(about.name)
  if (timeoutMs === undefined) return refused('unavailable', about.otherwise)
  if (actor.kind !== 'group' || !request) {
    return refused('unavailable', 'Only an agent asks for this with a command; an operator has other ways.')
  }
  const tooMany = tooManyRequests(actor.group.folder, context)
  if (tooMany) return tooMany
  const createdAt = now.getTime()
  const approved = context.shown?.evidence
  const row: NewRequest = {
    seq: request.seq,
    reply: request.reply,
    group: actor.group.folder,
    kind: 'work',
    tool: about.name,
    input: approved ? { ...about.input, approved } : about.input,
    createdAt,
    expiresAt: createdAt + timeoutMs,
  }
  transaction.insertRequest(row)
  effect({ kind: 'request_stored', request: { ...row, status: 'waiting', outcome: null } })
  return null
}

const unknown = (tool: string): Refused =>
  refused('unavailable', `There is no service named ${tool} on this host.`)

const call = ({ tool: name, arguments: input }: Payload<'call_service'>, context: CommandContext) => {
  const { actor, services, transaction, now, effect } = context
  const tool = services?.catalogue.find(name)
  if (actor.kind !== 'group')
    return refused('forbidden', 'Services answer agents; an operator has other ways.')
  if (!tool) return unknown(name)
  // Whoever may not use it is told so; that it exists is no secret.
  if (!isAllowed(tool.groups, actor.group)) {
    return refused('forbidden', `This group may not use ${name}.`)
  }
  const checked = tool.check(input)
  if (!checked.ok) return refused('invalid_field', checked.message)
  if (tool.kind === 'instant') {
    return tool.perform(checked.input, { transaction, group: actor.group, now, effect })
  }
  const stored = storeRequest({ kind: 'service', tool: name, input, timeoutMs: tool.timeoutMs }, context)
  return 'ok' in stored ? stored : null
}

export const callService = defineCommand({
  type: 'call_service',
  payload: payloads.call_service,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => self(context),
  guard({ tool: name, arguments: input }, { services, actor }) {
    const tool = services?.catalogue.find(name)
    // What is refused anyway is refused at once.
    if (!tool || actor.kind !== 'group' || !isAllowed(tool.groups, actor.group) || !tool.check(input).ok)
      return 'local'
    return {
      action: {
        name,
        summary: `use ${name} (${tool.service}): ${tool.title}`,
        payload: input,
        origin: tool.origin,
      },
      reach: reachOfLabels(tool.labels),
      reads: taintOfLabels(tool.labels),
      forbidden: forbiddenBy(tool.labels),
      dataset: tool.dataset,
      tool: { service: tool.service, labels: tool.labels },
    }
  },
  execute: call,
})

const cancelled: Outcome = refused('cancelled', 'The request was taken back by whoever had made it.')

export const cancelRequest = defineCommand({
  type: 'cancel_request',
  payload: payloads.cancel_request,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => self(context),
  guard: local,
  execute({ request_id, unless_begun }, { actor, transaction, now, effect }) {
    if (actor.kind !== 'group')
      return refused('forbidden', 'Only the group that made a request can cancel it.')
    const request = transaction.openRequest(actor.group.folder, request_id)
    if (!request) {
      return refused('not_found', 'The group has no open request with this id.')
    }
    if (unless_begun && (request.kind === 'work' || request.kind === 'service')) {
      return refused('wrong_state', 'The host is already working on this request, so it cannot be cancelled.')
    }
    transaction.answerRequest(request.seq, cancelled, now.getTime())
    effect({ kind: 'request_over', seq: request.seq, outcome: cancelled })
    return done({ request_id, status: 'cancelled' })
  },
})
