import { type Refused, refused } from '../../base/outcome.ts'
import type { Actor, CommandDefinition, Target } from '../types.ts'

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
