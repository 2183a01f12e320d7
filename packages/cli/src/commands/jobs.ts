import type { JobAnswer, JobRunAnswer, WholeJobRunAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { neededSchedule, type ScheduleOptions, scheduleInWords, withSchedule } from '../schedule.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible, visibleLines } from '../text.ts'

interface AddOptions extends CommonOptions, ScheduleOptions {
  command: string
  cwd?: string
  user?: string
  timeout?: number
}

const columns: Column<JobAnswer>[] = [
  { title: 'ID', value: job => job.id },
  { title: 'NAME', value: job => job.job.name, flexible: true },
  { title: 'STATUS', value: job => job.status },
  { title: 'NEXT RUN', value: job => when(job.next_run), brief: briefTime },
  { title: 'SCHEDULE', value: scheduleInWords, flexible: true },
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
  { title: 'DUE', value: run => when(run.due_at), brief: briefTime },
  { title: 'STATUS', value: run => (run.manual ? `${run.status}, asked for` : run.status) },
  { title: 'EXIT', value: run => run.signal ?? (run.exit_code === null ? '-' : String(run.exit_code)) },
  { title: 'TOOK', value: took, right: true },
  { title: 'RESULT', value: endOf, flexible: true },
]

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
  withSchedule(
    add
      .argument('<name>', 'what it is called; each only once')
      .requiredOption('--command <command>', 'for /bin/sh'),
  )
    .option('--zone <name>', 'the time zone of that; left out: the configured one')
    .option('--cwd <directory>', 'where; left out: the first of hostJobs.directories')
    .option('--user <name>', 'as whom; left out: the first of hostJobs.users')
    .option('--timeout <seconds>', 'after which it is ended; left out: 600', positive)
    .action(async (name: string, options: AddOptions) => {
      const body = {
        name,
        command: options.command,
        ...neededSchedule(options, add),
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
