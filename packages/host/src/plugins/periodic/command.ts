import { payloads } from '@hatchway/protocol'
import { named, quoted } from '../../base/visible-text.ts'
import { storeWork } from '../../commands/requests.ts'
import { nextRun } from '../../commands/schedule.ts'
import { defineCommand } from '../../commands/types.ts'
import { seenBy } from '../../guard/guard.ts'
import { folderOf } from './folder-name.ts'
import type { PeriodicTable } from './table.ts'

/** how long making one may take */
export const periodicMs = 60_000

/** A group, its folder, its instructions and the task that wakes it, all or nothing: files are made, so it is work. */
export const periodicCommand = (table: PeriodicTable) =>
  defineCommand({
    type: 'create_periodic_agent',
    payload: payloads.create_periodic_agent,
    permission: { main: 'any', others: 'never' },
    target: () => 'host',
    guard(payload, { transaction, timezone }) {
      const { name, schedule, prompt, instructions, context_mode = 'group', jid } = payload
      const known = table.find(name)
      const folder = known?.group ?? folderOf(name)
      return {
        action: {
          name: 'create_periodic_agent',
          summary: `${known ? 'change' : 'make'} the agent ${named(name)}, woken by ${quoted(schedule)}`,
          payload: {
            ...{ name, schedule, timezone, prompt, instructions, context_mode },
            chat: jid ?? (known ? transaction.group(known.group)?.jid : folder && `local:${folder}`),
            folder,
            task_id: known?.taskId,
          },
        },
        text: { name, prompt, instructions },
        // What is written goes to another group, whose agent acts on it.
        reach: 'both',
        reads: { corrupted: false, secret: false },
      }
    },
    offer: ({ main }) => (main ? { command: 'create_periodic_agent', timeout_ms: periodicMs } : undefined),
    execute(payload, context) {
      const { timezone, now, guard, actor } = context
      const next = nextRun({ schedule_type: 'cron', schedule_value: payload.schedule, timezone }, now)
      if (!next.ok) return next
      // By the time it is made its maker may be in another context, or in none.
      const seen = guard && actor.kind === 'group' ? seenBy(actor.group.folder, guard, context) : undefined
      return storeWork(
        {
          name: 'create_periodic_agent',
          input: { ...payload, ...(seen ? { seen } : {}) },
          otherwise: 'Only a running daemon makes agents.',
        },
        context,
      )
    },
  })
