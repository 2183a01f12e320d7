import { randomUUID } from 'node:crypto'
import type { HostJob, Task } from '@hatchway/protocol'
import { createWorkQueue } from '../../base/keyed-queue.ts'
import { authorise } from '../../commands/registry.ts'
import type { CommandDefinition } from '../../commands/types.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import type { Begun, RunEnd, TaskKind } from '../../runs/scheduler/types.ts'
import type { OccurrenceRow } from '../../store/types.ts'
import { type Account, accountOf, ownAccount } from './accounts.ts'
import { jobEnvironment } from './environment.ts'
import { type Ending, execute, graceMs, neverBegun, type RunningJob } from './execute.ts'
import { type OutputPipe, openOutputPipe } from './pipe.ts'
import { endOrphanedJobs } from './processes.ts'
import type { JobRules } from './rules.ts'
import type { HostJobsSettings } from './settings.ts'
import type { JobRunTable } from './table.ts'

export interface JobsOptions {
  host: Pick<
    BuiltInHost<HostJobsSettings>,
    'settings' | 'group' | 'store' | 'environment' | 'retries' | 'log' | 'now'
  >
  /** undefined: no jobs are run here */
  rules: JobRules | undefined
  /** whoever may use it may have jobs */
  command: Pick<CommandDefinition, 'type' | 'permission'>
  table: JobRunTable
}

const stopped = 'The host stopped during the run.'

/**
 * Tasks that run a command on the host. A run goes this way:
 *
 *   waiting → its turn comes; pipe and user are looked up; `begin` looks at the rights once more
 *           → running, with a time-out
 *           → over: what it has left running is ended, its output is kept, and its end is noted, in one commit
 */
export function createJobs({ host, rules, command, table }: JobsOptions): Required<TaskKind> {
  const { settings, store, environment, retries, log } = host
  const now = () => host.now().getTime()
  const own = ownAccount()
  const queue = createWorkQueue({ perKey: settings.atOnce })
  const running = new Map<string, RunningJob>()
  const stopping = new AbortController()
  /** marks our processes; known before anything runs */
  let installation = ''

  const settled = (task: Task): HostJob | string => {
    if (!task.job) return 'It is no job.'
    if (!rules) return 'This host does not run jobs any more; see hostJobs.enabled.'
    const creator = host.group(task.created_by)
    if (!creator || authorise(command, { kind: 'group', group: creator }, 'host')) {
      return 'The group that answers for it may not run jobs on this host any more.'
    }
    const job = rules.settle(task.job)
    return 'ok' in job ? job.error.message : job
  }

  /** the user it runs as, or why it cannot */
  const identify = async ({ user }: HostJob): Promise<Account | string> => {
    if (user === null || user === own.name) return own
    return (await accountOf(user)) ?? `This machine has no user ${user}.`
  }

  const work = async (
    occurrence: OccurrenceRow,
    task: Task,
    begin: (runId: string) => Begun,
    pipe: OutputPipe,
  ): Promise<RunEnd> => {
    const runId = randomUUID()
    const wanted = settled(task)
    const account = typeof wanted === 'string' ? wanted : await identify(wanted)
    const begun = await retries.untilStored('beginning a job', () => begin(runId))
    if (!begun.ok) return failed(begun.reason)
    // It may have been changed while it waited; whatever `begin` let pass is within the rules.
    const job = settled(begun.task)
    if (typeof job === 'string') return note(occurrence, begun.task, neverBegun(job))
    if (typeof account === 'string') return note(occurrence, begun.task, neverBegun(account))
    const ending = await start(runId, job, account, pipe).catch((error: unknown) =>
      neverBegun(`It could not be started: ${error instanceof Error ? error.message : String(error)}`),
    )
    return note(occurrence, begun.task, ending)
  }

  const start = async (runId: string, job: HostJob, account: Account, pipe: OutputPipe): Promise<Ending> => {
    const started = execute({
      job,
      runId,
      installation,
      account,
      environment: jobEnvironment(account, settings.variables, environment),
      pipe,
      outputBytes: settings.outputBytes,
      log,
      now,
    })
    running.set(runId, started)
    if (stopping.signal.aborted) started.end(stopped)
    await started.over
    running.delete(runId)
    return started.ending
  }

  const note = async (occurrence: OccurrenceRow, task: Task, ending: Ending): Promise<RunEnd> => {
    const { isGood, how, tookMs, ...facts } = ending
    const end: RunEnd = isGood
      ? { status: 'done', result: how, error: null }
      : { status: 'failed', result: null, error: how }
    const at = now()
    const run = { ...facts, occurrenceId: occurrence.id, taskId: task.id, endedAt: at }
    const entry = entryFor(task, occurrence, end, at, ending)
    await retries.untilStored('noting the end of a job', () => table.endRun(run, end, entry))
    log.info({ task: task.id, job: task.job?.name, occurrence: occurrence.id, how }, 'a job has ended')
    return end
  }

  return {
    takes: task => task.job !== undefined,
    mayRun(task) {
      const job = settled(task)
      return typeof job === 'string' ? job : undefined
    },
    async run(occurrence, task, begin) {
      try {
        return await queue.run('', stopping.signal, async () => {
          const pipe = await openOutputPipe()
          try {
            return await work(occurrence, task, begin, pipe)
          } finally {
            pipe.close()
          }
        })
      } catch (error) {
        // One that has not begun is for the next start.
        if (stopping.signal.aborted && error === stopping.signal.reason) return failed(stopped)
        throw error
      }
    },
    async recover(ours) {
      installation = ours
      const runs = await endOrphanedJobs(installation, graceMs)
      if (runs.length > 0) log.warn({ runs }, 'jobs of an earlier process were ended')
      for (const occurrence of store.agents.occurrences({ status: 'running' })) {
        const task = store.agents.task(occurrence.taskId)
        if (task?.job) await note(occurrence, task, neverBegun(stopped))
      }
    },
    async stop() {
      stopping.abort(new Error(stopped))
      const left = [...running.values()]
      for (const { end } of left) end(stopped)
      await Promise.all(left.map(({ over }) => over))
    },
  }
}

const failed = (error: string): RunEnd => ({ status: 'failed', result: null, error })

const entryFor = (
  task: Task,
  occurrence: OccurrenceRow,
  { status, result, error }: RunEnd,
  at: number,
  { tookMs, exitCode, signal, timedOut }: Ending,
) => ({
  at,
  group: task.group,
  actor: 'host' as const,
  action: 'host_job',
  summary: `${task.job?.name}: ${result ?? error}`,
  outcome: status,
  tookMs,
  details: {
    task_id: task.id,
    occurrence_id: occurrence.id,
    exit_code: exitCode,
    signal,
    timed_out: timedOut,
    cwd: task.job?.cwd ?? null,
    user: task.job?.user ?? null,
  },
})
