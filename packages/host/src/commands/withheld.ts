import { type Group, payloads } from '@hatchway/protocol'
import { done, refused } from '../base/outcome.ts'
import type { Taint } from '../base/taint.ts'
import { type GuardRules, seenBy } from '../guard/guard.ts'
import { viewFor } from '../guard/withheld.ts'
import { self } from './requests.ts'
import { type CommandContext, defineCommand } from './types.ts'

/** What the group would have read, had its lists left nothing out. */
function withheldFrom(group: Group, guard: GuardRules, context: CommandContext): Taint {
  const { transaction } = context
  const own = group.main ? undefined : group.folder
  const view = viewFor(seenBy(group.folder, guard, context), transaction.texts(own), guard)
  for (const task of transaction.openTasks(own)) view.task(task)
  if (group.main) for (const other of transaction.groups()) view.group(other)
  // Strangers name those.
  if (group.main && transaction.hasOtherChats()) view.chat({ jid: '', name: '', last_activity: '' })
  return view.withheld()
}

export const showWithheld = defineCommand({
  type: 'show_withheld',
  payload: payloads.show_withheld,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => self(context),
  guard(_, context) {
    const { actor, guard } = context
    if (actor.kind !== 'group' || !guard) return 'local'
    return {
      action: { name: 'show_withheld', summary: 'read what its lists have left out', payload: {} },
      reach: 'local',
      reads: withheldFrom(actor.group, guard, context),
    }
  },
  // The lists are written after this is committed, for a group that has read it all by then.
  execute(_, { actor, effect }) {
    if (actor.kind !== 'group') return refused('forbidden', 'Nothing is withheld from an operator.')
    effect({ kind: 'tasks_changed', folder: actor.group.folder })
    effect({ kind: 'groups_changed' })
    return done({ status: 'shown' })
  },
})
