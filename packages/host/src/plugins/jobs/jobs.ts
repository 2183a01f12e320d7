import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { HostJob, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { markVariable } from '../../base/processes.ts'
import type { Retries } from '../../base/retry.ts'
import { authorise } from '../../commands/policy/permissions.ts'
import type { JobRules } from '../../commands/types.ts'
import type { Config } from '../../config.ts'
import type { Begun, RunEnd } from '../../runs/scheduler/scheduler.ts'
import { within } from '../../sandboxes/child.ts'
import type { OccurrenceRow } from '../../store/agent-types.ts'
import type { JobRunRow } from '../../store/job-runs.ts'
import type { Store } from '../../store/types.ts'
import { type Account, accountOf, ownAccount } from './accounts.ts'
import { jobEnvironment } from './environment.ts'
import { createOutput } from './output.ts'
import { type OutputPipe, openOutputPipe } from './pipe.ts'
import { endOrphanedJobs, type JobProcesses, jobMark, processesOf } from './processes.ts'

/**
 * Commands on the host, run when the scheduler says so. A run goes this way:
 *
 *   waiting → its turn comes; pipe and user are looked up; `begin` looks at the rights once more
 *           → running, with a time-out
 *           → over: what it has left running is ended, its output is kept, and its end is noted, in one commit
 */
export interface Jobs {
  run(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  /** why a job may not run now, if so; undefined for what is no job */
  mayRun(task: Task): string | undefined
  /** ends what an earlier process left running, and notes it; before anything new is run */
  recover(): Promise<void>
  /** starts nothing more, and ends what runs */
  stop(): Promise<void>
}

export interface JobsOptions {
  config: Pick<Config, 'hostJobs'>
  /** undefined: no jobs are run here */
  rules: JobRules | undefined
  store: Pick<Store, 'group' | 'jobs' | 'agents' | 'audit'>
  installation: string
  environment: NodeJS.ProcessEnv
  retries: Pick<Retries, 'untilStored'>
  log: Logger
  now(): number
  /** how long a job may take to end by itself after SIGTERM */
  graceMs?: number
}

const stopped = 'The host stopped during the run.'
const usualGraceMs = 2000
/** what a job has sent on its way just before its end, such as the last lines of a log, may still arrive */
const lingerMs = 500
const drainMs = 1000

export function createJobs(options: JobsOptions): Jobs {
  const {
    config,
    rules,
    store,
    installation,
    environment,
    retries,
    log,
    now,
    graceMs = usualGraceMs,
  } = options
  const { atOnce, outputBytes, variables } = config.hostJobs
  const own = ownAccount()
  const waiting: (() => void)[] = []
  const running = new Map<string, { end(): void; over: Promise<unknown> }>()
  let places = atOnce
  let isStopping = false

  const turn = async (): Promise<void> => {
    if (places > 0) places--
    else await new Promise<void>(resolve => waiting.push(resolve))
  }
  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else places++
  }

  const settled = (task: Task): HostJob | string => {
    if (!task.job) return 'It is no job.'
    if (!rules) return 'This host does not run jobs any more; see hostJobs.enabled.'
    const creator = store.group(task.created_by)
    if (!creator || authorise('schedule_host_job', { kind: 'group', group: creator }, 'host')) {
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
    const ending = await execute(runId, job, account, pipe).catch((error: unknown) =>
      neverBegun(`It could not be started: ${error instanceof Error ? error.message : String(error)}`),
    )
    return note(occurrence, begun.task, ending)
  }

  const execute = async (
    runId: string,
    job: HostJob,
    account: Account,
    pipe: OutputPipe,
  ): Promise<Ending> => {
    const startedAt = now()
    const child = spawn('/bin/sh', ['-c', '--', job.command], {
      cwd: job.cwd ?? '/',
      env: {
        ...jobEnvironment(account, variables, environment),
        [markVariable]: jobMark(installation, runId),
      },
      stdio: ['ignore', pipe.writing, pipe.writing],
      detached: true,
      ...(own.uid === 0 ? { uid: account.uid, gid: account.gid } : {}),
    })
    const exited = new Promise<Exit>(resolve => {
      child.once('error', error => resolve({ code: null, signal: null, problem: error.message }))
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    const output = createOutput(outputBytes)
    pipe.reading.on('data', (chunk: Buffer) => output.add(chunk))
    // What could be read is kept; how it ended does not depend on it.
    pipe.reading.on('error', error => log.warn({ err: error }, 'the output of a job could not be read'))
    const drained = new Promise<void>(resolve => pipe.reading.once('close', resolve))
    pipe.closeWriting()

    const { pid } = child
    const processes = pid === undefined ? none : processesOf(installation, runId, pid)
    let reason: string | undefined
    let ended: Promise<boolean> | undefined
    const givenUp = Promise.withResolvers<Exit>()
    const end = (why: string) => {
      reason ??= why
      ended ??= processes.end(graceMs).then(isGone => {
        // One that hangs in the kernel, or has become another user, is not waited for for ever.
        if (!isGone) givenUp.resolve({ code: null, signal: null })
        return isGone
      })
    }
    const timer = setTimeout(
      () => end(`It was ended after its time-out of ${job.timeout_seconds} s.`),
      job.timeout_seconds * 1000,
    )
    const over = Promise.race([exited, givenUp.promise])
    running.set(runId, { end: () => end(stopped), over })
    if (isStopping) end(stopped)

    const { code, signal, problem } = await over
    clearTimeout(timer)
    running.delete(runId)
    const why = reason
    const tookMs = now() - startedAt
    const isGone = ended ? await ended : await endRest(processes)
    await within(drainMs, drained)
    const how =
      problem !== undefined
        ? `It could not be started: ${problem}`
        : `${signal === null ? `exit code ${code}` : `ended by ${signal}`} after ${(tookMs / 1000).toFixed(1)} s`
    const left = isGone ? '' : ' Something of it may still be running.'
    return {
      isGood: why === undefined && code === 0 && isGone,
      how: `${why ?? how}${left}`,
      exitCode: code,
      signal,
      timedOut: why !== undefined && why !== stopped,
      ...textOf(output.read()),
      tookMs,
    }
  }

  const endRest = async (processes: JobProcesses): Promise<boolean> =>
    (await processes.areOver(lingerMs)) || processes.end(graceMs)

  const note = async (occurrence: OccurrenceRow, task: Task, ending: Ending): Promise<RunEnd> => {
    const { isGood, how, exitCode, signal, timedOut, output, dropped, tookMs } = ending
    const end: RunEnd = isGood
      ? { status: 'done', result: how, error: null }
      : { status: 'failed', result: null, error: how }
    const at = now()
    const run: JobRunRow = {
      occurrenceId: occurrence.id,
      taskId: task.id,
      exitCode,
      signal,
      timedOut,
      output,
      dropped,
      endedAt: at,
    }
    const entry = entryFor(task, occurrence, end, at, { tookMs, exitCode, signal, timedOut })
    await retries.untilStored('noting the end of a job', () => store.jobs.endRun(run, end, entry))
    log.info({ task: task.id, job: task.job?.name, occurrence: occurrence.id, how }, 'a job has ended')
    return end
  }

  return {
    async run(occurrence, task, begin) {
      await turn()
      let pipe: OutputPipe | undefined
      try {
        // One that has not begun is for the next start.
        if (isStopping) return failed(stopped)
        pipe = await openOutputPipe()
        return await work(occurrence, task, begin, pipe)
      } finally {
        pipe?.close()
        leave()
      }
    },
    mayRun(task) {
      if (!task.job) return undefined
      const job = settled(task)
      return typeof job === 'string' ? job : undefined
    },
    async recover() {
      const runs = await endOrphanedJobs(installation, graceMs)
      if (runs.length > 0) log.warn({ runs }, 'jobs of an earlier process were ended')
      for (const occurrence of store.agents.occurrences({ status: 'running' })) {
        const task = store.agents.task(occurrence.taskId)
        if (task?.job) await note(occurrence, task, neverBegun(stopped))
      }
    },
    async stop() {
      isStopping = true
      for (const next of waiting.splice(0)) next()
      const left = [...running.values()]
      for (const { end } of left) end()
      await Promise.all(left.map(({ over }) => over))
    },
  }
}

interface Exit {
  code: number | null
  signal: string | null
  /** it could not even be started */
  problem?: string
}

interface Ending extends Pick<JobRunRow, 'exitCode' | 'signal' | 'timedOut' | 'output' | 'dropped'> {
  isGood: boolean
  /** in one line, without anything it printed: agents read it, and what a job prints may be anybody's words */
  how: string
  tookMs: number
}

const none: JobProcesses = { areOver: async () => true, end: async () => true }

const textOf = ({ text, dropped }: { text: string; dropped: number }) => ({ output: text, dropped })

const neverBegun = (how: string): Ending => ({
  isGood: false,
  how,
  exitCode: null,
  signal: null,
  timedOut: false,
  output: '',
  dropped: 0,
  tookMs: 0,
})

const failed = (error: string): RunEnd => ({ status: 'failed', result: null, error })

const entryFor = (
  task: Task,
  occurrence: OccurrenceRow,
  { status, result, error }: RunEnd,
  at: number,
  { tookMs, ...facts }: Pick<Ending, 'tookMs' | 'exitCode' | 'signal' | 'timedOut'>,
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
    exit_code: facts.exitCode,
    signal: facts.signal,
    timed_out: facts.timedOut,
    cwd: task.job?.cwd ?? null,
    user: task.job?.user ?? null,
  },
})
