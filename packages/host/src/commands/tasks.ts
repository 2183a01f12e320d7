import { type Group, type Outcome, type Payload, payloads, type Task } from '@hatchway/protocol'
import type { z } from 'zod'
import { done, type Refused, refused } from '../base/outcome.ts'
import { named } from '../base/visible-text.ts'
import type { Traits } from '../guard/guard.ts'
import type { Transaction } from '../store/types.ts'
import { nextRun, type Schedule } from './schedule.ts'
import { type CommandContext, type CommandDefinition, defineCommand, local, type Target } from './types.ts'

/**
 * A task is active or paused until it is cancelled or completed, and then stays what it is. Open tasks always have
 * a next run; those that have ended have none.
 *
 *   active ⇄ paused      pause_task, resume_task, update_task
 *   active, paused → cancelled      cancel_task, update_task, unregister_group
 *   active → completed      by running, when nothing is left to run
 */
const ended = ({ status }: Task): boolean => status === 'cancelled' || status === 'completed'

const notFound = refused('not_found', 'There is no task with this id.')

const answer = ({ id, status, next_run }: Task): Outcome => done({ task_id: id, status, next_run })

const save = (task: Task, { transaction, effect }: CommandContext): Outcome => {
  transaction.updateTask(task)
  effect({ kind: 'tasks_changed', folder: task.group })
  return answer(task)
}

/** What differs between new tasks. Whatever else a task has begins alike, whoever makes it. */
type NewTask = Pick<Task, 'id' | 'group' | 'jid' | 'created_by' | 'prompt' | 'context_mode' | 'next_run'> &
  Schedule &
  Partial<Pick<Task, 'script' | 'model' | 'job'>>

export const newTask = (about: NewTask, now: Date): Task => ({
  script: null,
  model: null,
  ...about,
  status: 'active',
  last_run: null,
  last_result: null,
  created_at: now.toISOString(),
})

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

/** The next run from now on: a task whose time went by while it was paused does not make up for it. */
const upcoming = (schedule: Schedule, now: Date): { next_run: string } | Refused => {
  const next = nextRun(schedule, now)
  return next.ok ? { next_run: next.at.toISOString() } : next
}

/** An empty string takes the old value away. */
const replaced = (old: string | null, given: string | undefined): string | null =>
  given === undefined ? old : given || null

type GroupReference = Pick<Payload<'schedule_task'>, 'jid' | 'group'>

/** The group a new task is for. A name that nobody has is a target too: others must not learn which exist. */
const taskTarget = ({ jid, group }: GroupReference, { actor }: CommandContext): Target | Outcome => {
  if (group !== undefined) return { folder: group }
  if (jid !== undefined) return { jid }
  if (actor.kind === 'group') return { folder: actor.group.folder }
  return refused('invalid_field', 'jid: is required, or group, as an operator has neither')
}

const taskGroup = (
  { jid, group }: GroupReference,
  { actor, transaction }: CommandContext,
): Group | undefined => {
  if (group !== undefined) return transaction.group(group)
  if (jid !== undefined) return transaction.groupByJid(jid)
  return actor.kind === 'group' ? actor.group : undefined
}

/** What another group's agent is told to do is said to more than the own conversation. */
const toOthers = (
  name: string,
  group: string | undefined,
  payload: Record<string, unknown>,
  { actor }: CommandContext,
): Traits | undefined =>
  group === undefined || actor.kind !== 'group' || group === actor.group.folder
    ? undefined
    : {
        action: { name, summary: `tell the agent of ${group} what to do`, payload: { ...payload } },
        text: { prompt: payload.prompt, script: payload.script, model: payload.model },
        // It goes out as a message does, and somebody acts on it.
        reach: 'both',
        reads: { corrupted: false, secret: false },
      }

export const scheduleTask = defineCommand({
  type: 'schedule_task',
  payload: payloads.schedule_task,
  permission: { main: 'any', others: 'own' },
  target: taskTarget,
  writesTask: true,
  guard(payload, context) {
    const group = taskGroup(payload, context)
    const { timezone = context.timezone } = payload
    const about = { ...payload, timezone, group: group?.folder, jid: group?.jid }
    return toOthers('schedule_task', group?.folder, about, context) ?? 'local'
  },
  execute(payload, context) {
    const { transaction, actor, now, effect } = context
    const group = taskGroup(payload, context)
    if (!group) return refused('not_found', 'No group is registered for this chat or folder.')
    if (payload.task_id !== undefined && transaction.task(payload.task_id)) {
      return refused('conflict', 'There is a task with this id already. Choose another, or leave it out.')
    }
    const { prompt, schedule_type, schedule_value, context_mode, script, model } = payload
    const schedule = { schedule_type, schedule_value, timezone: payload.timezone ?? context.timezone }
    const next = upcoming(schedule, now)
    if ('ok' in next) return next
    const task = newTask(
      {
        id: payload.task_id ?? transaction.newTaskId(),
        group: group.folder,
        jid: group.jid,
        created_by: actor.kind === 'group' ? actor.group.folder : group.folder,
        prompt,
        script: replaced(null, script),
        model: replaced(null, model),
        ...schedule,
        context_mode,
        ...next,
      },
      now,
    )
    const tooMany = tooManyTasks(group.folder, task, context)
    if (tooMany) return tooMany
    transaction.insertTask(task)
    effect({ kind: 'tasks_changed', folder: task.group })
    return answer(task)
  },
})

type TaskCommand = 'update_task' | 'pause_task' | 'resume_task' | 'cancel_task'

/** What changes a task that exists and has not ended. */
const onTask = <P extends { task_id: string }>(
  type: TaskCommand,
  payload: z.ZodType<P>,
  change: (task: Task, payload: P, context: CommandContext) => Outcome,
): CommandDefinition<P> => ({
  type,
  payload,
  permission: { main: 'any', others: 'own' },
  guard: local,
  target(payload, { transaction }) {
    const task = transaction.task(payload.task_id)
    return task ? { folder: task.group } : notFound
  },
  execute(payload, context) {
    const task = context.transaction.task(payload.task_id)
    if (!task) return notFound
    if (ended(task))
      return refused('wrong_state', `The task is ${task.status} and stays so. Schedule a new one.`)
    return change(task, payload, context)
  },
})

export const pauseTask = onTask('pause_task', payloads.pause_task, (task, _, context) =>
  task.status === 'paused' ? answer(task) : save({ ...task, status: 'paused' }, context),
)

/** What a change is a change of. */
const asItIs = ({ schedule_type, schedule_value, timezone, status }: Task) => ({
  schedule_type,
  schedule_value,
  timezone,
  status,
})

/** When a command runs on the host, and whether at all, matters as much as which. */
const ofJob = (
  name: TaskCommand,
  change: { task_id: string },
  { actor, transaction }: CommandContext,
): Traits | undefined => {
  const task = transaction.task(change.task_id)
  const job = task?.job
  return job && actor.kind === 'group'
    ? {
        action: {
          name,
          summary: `change when the command ${named(job.name)} runs on the host`,
          payload: { ...change, ...job, now: asItIs(task) },
        },
        reach: 'dangerous',
        reads: { corrupted: false, secret: false },
      }
    : undefined
}

const resume = onTask('resume_task', payloads.resume_task, (task, _, context) => {
  if (task.status === 'active') return answer(task)
  const next = upcoming(task, context.now)
  if ('ok' in next) return refused(next.error.code, `${next.error.message} Use update_task before resuming.`)
  return save({ ...task, status: 'active', ...next }, context)
})

export const resumeTask: CommandDefinition<Payload<'resume_task'>> = {
  ...resume,
  guard: (payload, context) => ofJob('resume_task', payload, context) ?? 'local',
}

export const cancelled = (task: Task): Task => ({ ...task, status: 'cancelled', next_run: null })

export const cancelTask = onTask('cancel_task', payloads.cancel_task, (task, _, context) =>
  save(cancelled(task), context),
)

/**
 * A task runs with the rights of whoever answers for it. The group that a main group's task runs in may rewrite it,
 * but then answers for it itself: else it could put its own words into a task that runs as main.
 */
const answerable = (task: Task, { actor }: CommandContext): string =>
  actor.kind === 'group' && !actor.group.main ? actor.group.folder : task.created_by

/** A job is its command, which nobody changes without being asked about it: only when it runs can be changed. */
const jobKeeps = ['prompt', 'script', 'model', 'context_mode'] as const

const update = onTask('update_task', payloads.update_task, (task, payload, context) => {
  const { task_id: _, status = task.status, ...given } = payload
  const kept = task.job && jobKeeps.find(field => given[field] !== undefined)
  if (kept !== undefined) {
    return refused('invalid_field', `${kept}: a job on the host has none. Cancel it and schedule another.`)
  }
  const rewritten = Object.values(given).some(value => value !== undefined)
  if (!rewritten && payload.status === undefined) {
    return refused('invalid_field', 'The update names no field to change.')
  }
  const schedule = {
    schedule_type: given.schedule_type ?? task.schedule_type,
    schedule_value: given.schedule_value ?? task.schedule_value,
    timezone: given.timezone ?? task.timezone,
  }
  const rescheduled =
    given.schedule_type !== undefined || given.schedule_value !== undefined || given.timezone !== undefined
  const resumed = status === 'active' && task.status === 'paused'
  const next = rescheduled || resumed ? upcoming(schedule, context.now) : { next_run: task.next_run }
  if ('ok' in next) return next
  const updated: Task = {
    ...task,
    ...schedule,
    ...next,
    created_by: rewritten ? answerable(task, context) : task.created_by,
    prompt: given.prompt ?? task.prompt,
    script: replaced(task.script, given.script),
    model: replaced(task.model, given.model),
    context_mode: given.context_mode ?? task.context_mode,
    status,
  }
  if (status === 'cancelled') return save(cancelled(updated), context)
  return tooManyTasks(task.group, updated, context, task) ?? save(updated, context)
})

/** Whoever ends something needs no leave. */
const runsNoMore = ({ task_id: _, status, ...given }: Payload<'update_task'>): boolean =>
  (status === 'paused' || status === 'cancelled') && Object.values(given).every(value => value === undefined)

export const updateTask: CommandDefinition<Payload<'update_task'>> = {
  ...update,
  writesTask: true,
  guard(payload, context) {
    if (runsNoMore(payload)) return 'local'
    const task = context.transaction.task(payload.task_id)
    const { prompt, script, model, context_mode } = task ?? {}
    const about = {
      ...payload,
      group: task?.group,
      now: task && { ...asItIs(task), prompt, script, model, context_mode },
    }
    return (
      toOthers('update_task', task?.group, about, context) ??
      ofJob('update_task', payload, context) ??
      'local'
    )
  },
}
