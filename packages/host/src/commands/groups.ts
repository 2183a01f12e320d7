import {
  type DialectName,
  dialectNameSchema,
  type Group,
  type Outcome,
  type Payload,
  payloads,
} from '@hatchway/protocol'

import { done, refused } from '../base/outcome.ts'
import { named } from '../base/visible-text.ts'
import { seenBy, type Traits } from '../guard/guard.ts'
import { nameContext } from '../store/contexts.ts'
import { settledAddress } from './address.ts'
import { cancelled } from './tasks.ts'
import { type Actor, type CommandContext, defineCommand, local } from './types.ts'

export type NewGroup = Pick<Group, 'folder' | 'jid' | 'name' | 'main' | 'dialect'> &
  Partial<Pick<Group, 'trigger' | 'requires_trigger' | 'channel'>>

const register = (
  payload: Payload<'register_group'>,
  { main, dialect }: { main: boolean; dialect: DialectName },
  context: CommandContext,
): Outcome => {
  const { jid, name, folder, trigger, requires_trigger, channel } = payload
  if (payload.mounts_requested) {
    return refused(
      'forbidden',
      'Mounts are given by the configuration of the host only. Register without them.',
    )
  }
  if (context.transaction.groupByJid(jid)) {
    return refused('conflict', 'A group is registered for this chat already.')
  }
  if (context.transaction.isFolderTaken(folder)) {
    return refused('conflict', 'A group has this folder already. Choose another.')
  }
  context.transaction.insertGroup({
    folder,
    jid,
    name,
    main,
    dialect,
    trigger: trigger ?? null,
    requires_trigger: requires_trigger ?? !main,
    channel: channel ?? null,
    added_at: context.now.toISOString(),
    last_activity: null,
  })
  context.effect({ kind: 'group_added', folder })
  context.effect({ kind: 'groups_changed' })
  return done({ folder, jid })
}

/** Who gets an agent, and who loses it, is more than a conversation's own matter. */
const dangerous = (name: string, summary: string, payload: Record<string, unknown>): Traits => ({
  action: { name, summary, payload },
  reach: 'dangerous',
  reads: { corrupted: false, secret: false },
})

export const registerGroup = defineCommand({
  type: 'register_group',
  payload: payloads.register_group,
  permission: { main: 'any', others: 'never' },
  target: () => 'host',
  guard: ({ jid, name, folder, trigger, requires_trigger = true, channel }, { actor }) => ({
    ...dangerous('register_group', `register the group ${folder}`, {
      chat: jid,
      ...{ name, folder, trigger, requires_trigger, channel },
      dialect: dialectOf(actor),
    }),
    text: { name, trigger, channel },
    // Its agent is told the name and the chat, and main groups see them in their lists.
    reach: 'both',
  }),
  // No file makes a main group: that is the operator's to give.
  execute(payload, context) {
    const { actor, guard, transaction, now } = context
    const outcome = register(payload, { main: false, dialect: dialectOf(actor) }, context)
    if (outcome.ok && guard && actor.kind === 'group') {
      const seen = seenBy(actor.group.folder, guard, context)
      transaction.addTaint(payload.folder, nameContext, seen, 'register_group', now.getTime())
    }
    return outcome
  },
})

/** A group speaks as the one that registers it. */
const dialectOf = (actor: Actor): DialectName => (actor.kind === 'group' ? actor.group.dialect : 'hatchway')

/** The operator's way to register a group: through the same checks, and free to choose what no agent may. */
export const addGroup = (
  context: CommandContext,
  { main, dialect, trigger, channel, ...group }: NewGroup,
): Outcome => {
  const payload = payloads.register_group.safeParse({
    ...group,
    trigger: trigger ?? undefined,
    channel: channel ?? undefined,
  })
  const dialectName = dialectNameSchema.safeParse(dialect)
  const issue = payload.error?.issues[0] ?? dialectName.error?.issues[0]
  if (!payload.success || !dialectName.success) {
    return refused(
      'invalid_field',
      `${issue?.path.join('.') || 'dialect'}: ${issue?.message ?? 'is not valid'}`,
    )
  }
  const jid = settledAddress(payload.data.jid, context)
  if (typeof jid !== 'string') return jid
  return register({ ...payload.data, jid }, { main, dialect: dialectName.data }, context)
}

const mayRemove = (group: Group, { actor }: CommandContext): boolean =>
  actor.kind === 'operator' || !group.main

export const unregisterGroup = defineCommand({
  type: 'unregister_group',
  payload: payloads.unregister_group,
  permission: { main: 'any', others: 'never' },
  target: () => 'host',
  guard({ jid }, { transaction }) {
    const { folder, name } = transaction.groupByJid(jid) ?? {}
    return dangerous('unregister_group', `end the group of the chat ${named(jid)}`, { jid, folder, name })
  },
  execute({ jid }, context) {
    const { transaction, effect } = context
    const group = transaction.groupByJid(jid)
    if (!group) return refused('not_found', 'No group is registered for this chat.')
    if (!mayRemove(group, context))
      return refused('forbidden', 'Only an operator may unregister a main group.')
    const tasks = transaction.openTasks(group.folder)
    for (const task of tasks) transaction.updateTask(cancelled(task))
    transaction.deleteGroup(group.folder)
    effect({ kind: 'group_removed', folder: group.folder })
    effect({ kind: 'tasks_changed', folder: group.folder })
    effect({ kind: 'groups_changed' })
    return done({ folder: group.folder, jid, tasks_cancelled: tasks.length })
  },
})

export const refreshGroups = defineCommand({
  type: 'refresh_groups',
  payload: payloads.refresh_groups,
  permission: { main: 'any', others: 'never' },
  target: () => 'host',
  guard: local,
  execute(_, { transaction, effect }) {
    effect({ kind: 'groups_changed' })
    return done({ groups: transaction.groups().length })
  },
})
