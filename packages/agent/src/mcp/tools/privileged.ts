import type { HostOffer } from '@hatchway/protocol'
import { z } from 'zod'
import { commandTool } from '../command-tool.ts'
import type { Surroundings, Tool } from '../tool.ts'
import { contextMode, scheduleType, scheduleValue, timezone } from './schedule-fields.ts'

const changes = { readOnlyHint: false, idempotentHint: false, openWorldHint: false } as const
const once = { request_id: z.string() }

const resetContext = commandTool({
  name: 'reset_context',
  command: 'reset_context',
  title: 'Begin anew',
  description:
    'Ends this session once your turn is over and forgets it: the next one knows nothing of this conversation. The ' +
    'chat itself stays. Give a message to have the next session begin at once with it; write down in it what you ' +
    'will need to know.',
  input: z.strictObject({
    message: z
      .string()
      .optional()
      .describe('What the next session begins with. Left out: it waits to be called.'),
  }),
  output: z.object({ ...once, status: z.string() }),
  annotations: { ...changes, destructiveHint: true },
  payload: ({ message }) => ({ message }),
  result: z.object({ status: z.string(), message_stored: z.boolean() }),
  render: ({ status, message_stored }, { id }) => ({
    facts: { request_id: id, status },
    sentence: message_stored
      ? 'The next session begins with your message once this turn is over.'
      : 'This session is forgotten once this turn is over.',
  }),
})

const finishedWork = (timeoutMs: number) =>
  commandTool({
    name: 'finished_work',
    command: 'finished_work',
    title: 'Finish the scheduled run',
    description:
      'Says that the work of this scheduled run is done, and ends the run after this turn. Where this group’s commits ' +
      'are merged at the end, that happens first; if they cannot be merged the run goes on, and the answer says why.',
    input: z.strictObject({}),
    output: z.object({ ...once, status: z.string(), message: z.string().optional() }),
    annotations: { ...changes, destructiveHint: false },
    payload: () => ({}),
    hostMs: timeoutMs,
    result: z.object({ status: z.string(), message: z.string().optional() }),
    render: ({ status, message }, { id }) => ({
      facts: { request_id: id, status, message },
      sentence: `The run is ${status}.${message === undefined ? '' : ` ${message}`}`,
    }),
  })

const syncWorktree = (timeoutMs: number) =>
  commandTool({
    name: 'sync_worktree_to_main',
    command: 'sync_worktree',
    title: 'Merge the commits of the worktree',
    description:
      'Has the host take over the commits of your worktree: they are put on top of the main branch as it is now, ' +
      'checked, and merged or handed over for review. Commit everything first. On a conflict the answer lists the ' +
      'files: resolve them in the worktree, git add, git rebase --continue, and call this again.',
    input: z.strictObject({}),
    output: z.object({ ...once, merged: z.boolean(), message: z.string() }),
    annotations: { ...changes, destructiveHint: false },
    payload: () => ({}),
    hostMs: timeoutMs,
    result: z.object({ merged: z.boolean(), message: z.string() }),
    render: ({ merged, message }, { id }) => ({
      facts: { request_id: id, merged, message },
      sentence: message,
    }),
  })

const scheduleHostJob = ({ timezone: zone }: Surroundings) =>
  commandTool({
    name: 'schedule_host_job',
    command: 'schedule_host_job',
    title: 'Schedule a command on the host',
    description:
      'Has a shell command run on the host itself on a schedule, as the user and in the directories that the operator ' +
      'allows. A name can be used once; pause, resume and cancel it with the task tools.',
    input: z.strictObject({
      name: z.string().describe('What it is called.'),
      command: z.string().describe('The shell command.'),
      schedule_type: scheduleType,
      schedule_value: scheduleValue(zone),
      timezone: timezone(zone),
      cwd: z.string().optional().describe('Where it runs. Left out: the first directory that is allowed.'),
      user: z.string().optional().describe('Whom it runs as. Left out: the first user that is allowed.'),
      timeout_seconds: z.int().min(1).max(86_400).optional().describe('Left out: 600.'),
    }),
    output: z.object({ ...once, task_id: z.string(), next_run: z.string() }),
    annotations: { ...changes, destructiveHint: true, openWorldHint: true },
    payload: ({ timezone = zone, ...job }) => ({ ...job, timezone }),
    result: z.object({ task_id: z.string(), next_run: z.string() }),
    render: ({ task_id, next_run }, { id }) => ({
      facts: { request_id: id, task_id, next_run },
      sentence: `The job has the id ${task_id} and runs next at ${next_run}.`,
    }),
  })

const createPeriodicAgent = ({ timezone: zone }: Surroundings, timeoutMs: number) =>
  commandTool({
    name: 'create_periodic_agent',
    command: 'create_periodic_agent',
    title: 'Make or change a periodic agent',
    description:
      'Makes an agent of its own with a folder, instructions, a chat and a task that wakes it. Used again with the ' +
      `same name it changes that agent. Times are in the time zone ${zone}.`,
    input: z.strictObject({
      name: z.string().describe('What it is called; its folder is named after it.'),
      schedule: z.string().describe('A cron expression, such as 0 9 * * 1-5.'),
      prompt: z.string().describe('What it is told when it is woken.'),
      instructions: z.string().optional().describe('What it always knows about its work.'),
      context_mode: contextMode.optional(),
      jid: z.string().optional().describe('The chat it reports to. Left out: one of its own.'),
    }),
    output: z.object({
      ...once,
      folder: z.string(),
      jid: z.string(),
      task_id: z.string(),
      next_run: z.string(),
      status: z.string(),
    }),
    annotations: { ...changes, idempotentHint: true, destructiveHint: false },
    payload: payload => payload,
    hostMs: timeoutMs,
    result: z.object({
      folder: z.string(),
      jid: z.string(),
      task_id: z.string(),
      next_run: z.string(),
      status: z.string(),
    }),
    render: (result, { id }) => ({
      facts: { request_id: id, ...result },
      sentence: `The agent in ${result.folder} is ${result.status}; it is woken next at ${result.next_run}.`,
    }),
  })

const deployChanges = (timeoutMs: number) =>
  commandTool({
    name: 'deploy_changes',
    command: 'deploy',
    title: 'Deploy the host',
    description:
      'Has the host built, checked and restarted with the code that is checked out. This session ends with the ' +
      'restart; give a resume prompt to go on afterwards. If the new code does not come up, the host goes back to ' +
      'what ran before and says so.',
    input: z.strictObject({
      rebuild_container: z.boolean().optional().describe('Build also if the revision is the one that runs.'),
      resume_prompt: z.string().optional().describe('What you are told once the host is up again.'),
    }),
    output: z.object({ ...once, status: z.string() }),
    annotations: { ...changes, destructiveHint: true },
    payload: ({ rebuild_container, resume_prompt }) => ({ rebuild: rebuild_container, resume_prompt }),
    names: { rebuild: 'rebuild_container' },
    hostMs: timeoutMs,
    result: z.object({ status: z.string() }),
    render: ({ status }, { id }) => ({
      facts: { request_id: id, status },
      sentence: `The host is ${status}.`,
    }),
  })

/** What the host says that it does for this group, beside what every host does. */
export const offeredTools = (offers: readonly HostOffer[], surroundings: Surroundings): readonly Tool[] =>
  offers.map(({ command, timeout_ms }) => {
    switch (command) {
      case 'reset_context':
        return resetContext
      case 'finished_work':
        return finishedWork(timeout_ms)
      case 'sync_worktree':
        return syncWorktree(timeout_ms)
      case 'schedule_host_job':
        return scheduleHostJob(surroundings)
      case 'create_periodic_agent':
        return createPeriodicAgent(surroundings, timeout_ms)
      case 'deploy':
        return deployChanges(timeout_ms)
      default:
        throw new Error(`unknown offer ${command satisfies never}`)
    }
  })

export const offeredNames = [
  'reset_context',
  'finished_work',
  'sync_worktree_to_main',
  'schedule_host_job',
  'create_periodic_agent',
  'deploy_changes',
] as const
