import {
  type AnyCommand,
  anyCommandSchema,
  isCommandType,
  type Outcome,
  payloadFrom,
} from '@hatchway/protocol'
import { type Refused, refused } from '../base/outcome.ts'
import type { Taint } from '../base/taint.ts'
import {
  applyReleased,
  digestOf,
  judge,
  noteTask,
  ruledOut,
  standingOf,
  type Traits,
} from '../guard/guard.ts'
import { settledAddress } from './address.ts'
import { hold } from './hold.ts'
import type { Actor, CommandContext, CommandDefinition, Target } from './types.ts'

/** Every command this host knows, by its type: the kernel's, and those of its plugins. */
export interface Commands {
  /**
   * The only way to have a command executed: address, target, permission, guard, then what it does. null: the answer
   * follows.
   */
  perform(command: AnyCommand, context: CommandContext): Outcome | null
  /** what a standing approval of it is bound to as things are now; undefined: there can be none */
  standing(command: AnyCommand, taint: Taint, context: CommandContext): string | undefined
  all(): readonly CommandDefinition[]
  add(definitions: readonly CommandDefinition[]): void
}

export function createCommands(definitions: readonly CommandDefinition[]): Commands {
  const byType = new Map<string, CommandDefinition>()
  const add: Commands['add'] = all => {
    for (const definition of all) {
      if (byType.has(definition.type)) throw new Error(`Two commands have the type ${definition.type}.`)
      byType.set(definition.type, definition)
    }
  }
  add(definitions)
  return {
    add,
    perform(command, context) {
      const definition = byType.get(command.type)
      if (!definition) return missing(command.type)
      // What the protocol lists has been validated with its file.
      if (isCommandType(command.type)) return decide(definition, command.type, command.payload, context)
      const parsed = payloadFrom(definition.payload, command.payload)
      return parsed.ok ? decide(definition, command.type, parsed.payload, context) : parsed
    },
    standing(command, taint, context) {
      const definition = byType.get(command.type)
      if (!definition) return undefined
      const parsed = payloadFrom(definition.payload, command.payload)
      if (!parsed.ok) return undefined
      const traits = definition.guard(parsed.payload, context)
      return traits === 'local' ? undefined : standingOf(traits, taint)
    },
    all: () => [...byType.values()],
  }
}

const missing = (type: string): Outcome =>
  isCommandType(type)
    ? refused('unavailable', `This host does not carry out ${type}: the plugin for it is not installed.`)
    : refused('unknown_type', `there is no command of type ${type}`)

const decide = (
  definition: CommandDefinition,
  type: string,
  given: unknown,
  context: CommandContext,
): Outcome | null => {
  const settled = withAddress(given, context)
  if (!settled.ok) return settled
  const { payload } = settled
  const target = definition.target(payload, context)
  if (isOutcome(target)) return target
  const notAllowed = authorise(definition, context.actor, target)
  if (notAllowed) return notAllowed
  const { guard, actor } = context
  if (!guard || actor.kind !== 'group') return definition.execute(payload, context)
  const { folder } = actor.group
  const traits = definition.guard(payload, context)
  if (context.isReleased) {
    if (context.provider !== definition.provider) return changed
    if (traits !== 'local') {
      // It may have been forbidden since it was held.
      if (traits.forbidden !== undefined) return ruledOut(traits)
      if (isAnother(traits.action, context)) return changed
      applyReleased(traits, folder, guard, context)
    }
  } else if (traits !== 'local') {
    const judgement = judge(traits, actor.group, guard, {
      ...context,
      requestId: context.request?.reply?.id ?? null,
      runId: context.host?.runOf(folder)?.id,
      provider: definition.provider,
    })
    if (judgement.kind === 'deny') return judgement.outcome
    if (judgement.kind === 'hold') {
      const command = anyCommandSchema.parse({ type, payload })
      return hold({ ...judgement.held, command }, actor.group, guard, context)
    }
  }
  const outcome = definition.execute(payload, context)
  if (outcome?.ok && definition.writesTask) noteTask(outcome.result.task_id, folder, guard, context)
  return outcome
}

/**
 * Whether somebody may use a command on a target; undefined: yes. What acts only ever on the sender itself (its context, its
 * worktree, its shell) is `own` for the main group too.
 */
export const authorise = (
  { type, permission }: Pick<CommandDefinition, 'type' | 'permission'>,
  actor: Actor,
  target: Target,
): Refused | undefined => {
  if (actor.kind === 'operator') return undefined
  const { group } = actor
  const reach = permission[group.main ? 'main' : 'others']
  if (reach === 'any') return undefined
  if (reach === 'never') return refused('forbidden', `Only the main group may use ${type}.`)
  if (isOwn(group, target)) return undefined
  return refused('forbidden', `A group may use ${type} only for its own chat and its own tasks.`)
}

/** Names are compared whole: a prefix of the right name is another name. */
const isOwn = (group: { folder: string; jid: string }, target: Target): boolean => {
  if (target === 'host') return false
  return 'folder' in target ? target.folder === group.folder : target.jid === group.jid
}

/** Chats have one form of their address. */
function withAddress(payload: unknown, context: CommandContext): { ok: true; payload: unknown } | Refused {
  if (typeof payload !== 'object' || payload === null) return { ok: true, payload }
  if (!('jid' in payload) || typeof payload.jid !== 'string') return { ok: true, payload }
  const jid = settledAddress(payload.jid, context)
  if (typeof jid !== 'string') return jid
  return { ok: true, payload: jid === payload.jid ? payload : { ...payload, jid } }
}

const changed = refused(
  'conflict',
  'Its effect has changed since it was approved, so it was not executed. Send the command again.',
)

/** Whether it would do something else by now than whoever decided was shown. */
const isAnother = ({ payload, ...action }: Traits['action'], { shown }: CommandContext): boolean =>
  shown !== undefined && digestOf({ ...action, payload: { ...payload, ...shown.evidence } }) !== shown.digest

const isOutcome = (target: Target | Outcome): target is Outcome => target !== 'host' && 'ok' in target
