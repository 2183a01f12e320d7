import type { JobAnswer, JobRunAnswer, WholeJobRunAnswer } from '@hatchway/host/api'
import { type Command, InvalidArgumentError } from 'commander'
import { once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible, visibleLines } from '../text.ts'

interface AddOptions extends CommonOptions {
  command: string
  cron?: string
  every?: string
  at?: string
  zone?: string
  cwd?: string
  user?: string
  timeout?: number
}

const columns: Column<JobAnswer>[] = [
  { title: 'ID', value: job => job.id },
  { title: 'NAME', value: job => job.job.name, flexible: true },
  { title: 'STATUS', value: job => job.status },
  { title: 'NEXT RUN', value: job => when(job.next_run) },
  { title: 'SCHEDULE', value: job => `${job.schedule_type} ${job.schedule_value}`, flexible: true },
  { title: 'USER', value: job => job.job.user ?? '-' },
  { title: 'IN', value: job => job.job.cwd ?? '-', flexible: true },
  { title: 'COMMAND', value: job => job.job.command, flexible: true },
  { title: 'LAST', value: job => (job.last ? endOf(job.last) : '-'), flexible: true },
]

const endOf = (run: JobRunAnswer) => run.error ?? run.result ?? run.status

const took = ({ started_at, ended_at }: JobRunAnswer) =>
  started_at === null || ended_at === null
    ? '-'
    : `${((Date.parse(ended_at) - Date.parse(started_at)) / 1000).toFixed(1)} s`

const runColumns: Column<JobRunAnswer>[] = [
  { title: 'RUN', value: run => run.id },
  { title: 'DUE', value: run => when(run.due_at) },
  { title: 'STATUS', value: run => (run.manual ? `${run.status}, asked for` : run.status) },
  { title: 'EXIT', value: run => run.signal ?? (run.exit_code === null ? '-' : String(run.exit_code)) },
  { title: 'TOOK', value: took, right: true },
  { title: 'RESULT', value: endOf, flexible: true },
]

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const interval = (text: string): string => {
  const [, count, unit = ''] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? []
  if (count === undefined) throw new InvalidArgumentError('Write it as 30s, 10m, 2h or 1d.')
  return String(Number(count) * (units[unit] ?? 0))
}

/** The one way to say when that was used. */
function scheduleOf({ cron, every, at }: AddOptions): { schedule_type: string; schedule_value: string } {
  const given = [
    { schedule_type: 'cron', schedule_value: cron },
    { schedule_type: 'interval', schedule_value: every },
    { schedule_type: 'once', schedule_value: at },
  ].flatMap(({ schedule_type, schedule_value }) =>
    schedule_value === undefined ? [] : [{ schedule_type, schedule_value }],
  )
  const [schedule, ...others] = given
  if (!schedule || others.length > 0)
    throw new InvalidArgumentError('One of --cron, --every and --at says when it runs.')
  return schedule
}

export function addJobs(program: Command): void {
  const jobs = program
    .command('jobs')
    .description('commands on this host that run on a schedule; pause, resume, cancel and run: see tasks')

  common(
    jobs.command('list', { isDefault: true }).description('jobs that will run or are paused'),
    'jobs\njobs list --all',
  )
    .option('--all', 'completed and cancelled ones too')
    .action((options: CommonOptions & { all?: boolean }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get(`/jobs${options.all ? '?all=1' : ''}`, api.jobsAnswer)),
          columns,
          options.all ? 'There is no job.' : 'There is no job. Those that are over are shown with --all.',
        ),
      ),
    )

  const add = common(
    jobs
      .command('add')
      .description('have a command run on this host, as far as hostJobs in the configuration allows'),
    "jobs add backup --command './backup.sh' --cron '0 3 * * *'\njobs add pulse --command uptime --every 10m --timeout 5",
  )
  add
    .argument('<name>', 'what it is called; each only once')
    .requiredOption('--command <command>', 'for /bin/sh')
    .option('--cron <expression>', 'when: a cron expression')
    .option('--every <time>', 'when: at intervals such as 30s, 10m, 2h, 1d', interval)
    .option('--at <time>', 'when: once, in ISO 8601')
    .option('--zone <name>', 'the time zone of that; left out: the configured one')
    .option('--cwd <directory>', 'where; left out: the first of hostJobs.directories')
    .option('--user <name>', 'as whom; left out: the first of hostJobs.users')
    .option('--timeout <seconds>', 'after which it is ended; left out: 600', positive)
    .action(async (name: string, options: AddOptions) => {
      const body = {
        name,
        command: options.command,
        ...asked(() => scheduleOf(options), add),
        timezone: options.zone,
        cwd: options.cwd,
        user: options.user,
        timeout_seconds: options.timeout,
      }
      const result = await withClient(options, (client, api) => client.post('/jobs', body, api.resultAnswer))
      if (options.json) return printJson(result)
      await printLine(
        `Job ${visible(String(result.task_id))} (${visible(name)}) runs next ${when(String(result.next_run))}.`,
      )
    })

  common(jobs.command('runs').description('when a job ran, and how it ended, oldest first'), 'jobs runs 7')
    .argument('<id>', 'of the job, as jobs list shows it')
    .option('--limit <number>', 'so many, at most 10000', positive, 100)
    .action((id: string, options: CommonOptions & { limit: number }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get(`/jobs/${encodeURIComponent(id)}/runs?limit=${options.limit}`, api.jobRunsAnswer)),
          runColumns,
          'It was not due yet.',
        ),
      ),
    )

  common(
    jobs.command('output').description('one run of a job, with what it printed'),
    'jobs output 7.1767225600000',
  )
    .argument('<run>', 'as jobs runs shows it')
    .action(async (id: string, options: CommonOptions) => {
      const run = await withClient(options, (client, api) =>
        client.get(`/job-runs/${encodeURIComponent(id)}`, api.wholeJobRunAnswer),
      )
      if (options.json) return printJson(run)
      await show(run)
    })
}

/** A command line that makes no sense is said to be so, with the way to help. */
function asked<T>(value: () => T, command: Command): T {
  try {
    return value()
  } catch (error) {
    if (error instanceof InvalidArgumentError) command.error(`error: ${error.message}`)
    throw error
  }
}

async function show(run: WholeJobRunAnswer): Promise<void> {
  const facts: [string, string][] = [
    ['run', run.id],
    ['job', run.task_id],
    ['status', run.status],
    ['started', when(run.started_at)],
    ['ended', when(run.ended_at)],
    ['result', endOf(run)],
  ]
  for (const [name, value] of facts) await printLine(`${name.padEnd(8)} ${visible(value)}`)
  if (run.dropped > 0) await printLine(`dropped  ${run.dropped} bytes`)
  if (run.output !== '') await printLine(visibleLines(run.output.replace(/\n$/, '')))
}
