import type { CommandType } from '@hatchway/protocol'
import { type Refused, refused } from '../../base/outcome.ts'
import type { Actor, Target } from '../types.ts'

/** How far a right reaches: everywhere, the group's own chat and tasks, or nowhere. */
type Reach = 'any' | 'own' | 'never'

/**
 * Who may do what. A command without a row does not compile, and an operator, who sits on the host, needs none.
 * What acts only ever on the sender itself (its context, its worktree, its shell) is `own` for the main group too.
 */
export const permissions: Readonly<Record<CommandType, { main: Reach; others: Reach }>> = {
  send_message: { main: 'any', others: 'own' },
  react: { main: 'any', others: 'own' },

  schedule_task: { main: 'any', others: 'own' },
  update_task: { main: 'any', others: 'own' },
  pause_task: { main: 'any', others: 'own' },
  resume_task: { main: 'any', others: 'own' },
  cancel_task: { main: 'any', others: 'own' },

  register_group: { main: 'any', others: 'never' },
  unregister_group: { main: 'any', others: 'never' },
  refresh_groups: { main: 'any', others: 'never' },

  schedule_host_job: { main: 'any', others: 'never' },
  create_periodic_agent: { main: 'any', others: 'never' },
  deploy: { main: 'any', others: 'never' },

  show_withheld: { main: 'own', others: 'own' },
  reset_context: { main: 'own', others: 'own' },
  finished_work: { main: 'own', others: 'own' },
  sync_worktree: { main: 'own', others: 'own' },
  call_service: { main: 'own', others: 'own' },
  ask_user: { main: 'own', others: 'own' },
  cancel_request: { main: 'own', others: 'own' },
  check_shell: { main: 'own', others: 'own' },
}

/** Undefined: it may happen. */
export const authorise = (type: CommandType, actor: Actor, target: Target): Refused | undefined => {
  if (actor.kind === 'operator') return undefined
  const { group } = actor
  const reach = permissions[type][group.main ? 'main' : 'others']
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
