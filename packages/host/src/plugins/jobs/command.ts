import { type HostJob, type Payload, payloads } from '@hatchway/protocol'
import { done, type Refused, refused } from '../../base/outcome.ts'
import { named } from '../../base/visible-text.ts'
import { nextRun, type Schedule } from '../../commands/schedule.ts'
import { newTask, tooManyTasks } from '../../commands/tasks.ts'
import { type CommandContext, defineCommand } from '../../commands/types.ts'
import type { JobRules } from './rules.ts'

/** how long an agent waits for the answer, which comes with the command itself */
const answerMs = 60_000

interface Planned {
  job: HostJob
  schedule: Schedule
  at: Date
}

/** What would be scheduled, or why not. */
const plan = (
  payload: Payload<'schedule_host_job'>,
  rules: JobRules | undefined,
  context: CommandContext,
): Planned | Refused => {
  if (!rules) {
    return refused(
      'unavailable',
      'This host runs no commands of its own for agents. Its operator can allow some with hostJobs in the configuration.',
    )
  }
  const { name, command, schedule_type, schedule_value, cwd, user, timeout_seconds } = payload
  if (command.includes('\0')) return refused('invalid_field', 'command: must not hold a zero byte.')
  const schedule = { schedule_type, schedule_value, timezone: payload.timezone ?? context.timezone }
  const job = rules.settle({ name, command, cwd: cwd ?? null, user: user ?? null, timeout_seconds })
  if ('ok' in job) return job
  const next = nextRun(schedule, context.now)
  return next.ok ? { job, schedule, at: next.at } : next
}

const when = ({ schedule_type, schedule_value, timezone }: Schedule): string =>
  schedule_type === 'interval'
    ? `every ${schedule_value} ms`
    : `${schedule_type === 'cron' ? 'by' : 'once at'} ${schedule_value} (${timezone})`

/**
 * A command on the host is a task with a command in place of an agent: it belongs to the main group that asked, and to
 * the first one where an operator did.
 */
export const hostJobCommand = (rules: JobRules | undefined) =>
  defineCommand({
    type: 'schedule_host_job',
    payload: payloads.schedule_host_job,
    permission: { main: 'any', others: 'never' },
    target: () => 'host',
    writesTask: true,
    guard(payload, context) {
      const planned = plan(payload, rules, context)
      // What is refused anyway is refused at once.
      if ('ok' in planned) return 'local'
      const { job, schedule } = planned
      return {
        action: {
          name: 'schedule_host_job',
          summary: `run the command ${named(job.name)} on the host ${when(schedule)}`,
          payload: { ...job, ...schedule },
        },
        // A shell on the host can send anything out, and change anything.
        reach: 'both',
        reads: { corrupted: false, secret: false },
      }
    },
    offer: ({ main }) => (main && rules ? { command: 'schedule_host_job', timeout_ms: answerMs } : undefined),
    execute(payload, context) {
      const { actor, transaction, now, effect } = context
      const planned = plan(payload, rules, context)
      if ('ok' in planned) return planned
      const { job, schedule, at } = planned
      const group = actor.kind === 'group' ? actor.group : transaction.groups().find(({ main }) => main)
      if (!group)
        return refused('not_found', 'No main group is registered, and a job belongs to one. Add it first.')
      if (transaction.openTasks().some(open => open.job?.name === job.name)) {
        return refused('conflict', 'There is a job of this name already. Cancel it first, or choose another.')
      }
      const task = newTask(
        {
          id: transaction.newTaskId(),
          group: group.folder,
          jid: group.jid,
          created_by: group.folder,
          prompt: job.name,
          ...schedule,
          context_mode: 'isolated',
          next_run: at.toISOString(),
          job,
        },
        now,
      )
      const tooMany = tooManyTasks(group.folder, task, context)
      if (tooMany) return tooMany
      transaction.insertTask(task)
      // The guard notes what it lets agents do; nobody else would note an operator's.
      if (actor.kind === 'operator') {
        transaction.audit({
          at: now.getTime(),
          group: group.folder,
          actor: 'operator',
          decidedBy: 'operator',
          action: 'schedule_host_job',
          summary: `run the command ${job.name} on the host ${when(schedule)}`,
          outcome: 'allowed',
          details: { task_id: task.id },
        })
      }
      effect({ kind: 'tasks_changed', folder: group.folder })
      return done({ task_id: task.id, name: job.name, status: task.status, next_run: task.next_run })
    },
  })
