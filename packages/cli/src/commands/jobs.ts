import type { JobAnswer, JobRunAnswer, WholeJobRunAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { facts, quoted } from '../facts.ts'
import { duration, timeColumn, when } from '../format.ts'
import { flag, limit, parsed, positive, required, requiredText, text } from '../inputs.ts'
import { requiredSchedule, scheduleInputs, scheduleInWords } from '../schedule.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const resultOf = (run: JobRunAnswer) => run.error ?? run.result ?? run.status

const columns: Column<JobAnswer>[] = [
  { title: 'ID', value: job => job.id },
  { title: 'NAME', value: job => job.job.name, flexible: true },
  { title: 'STATUS', value: job => job.status },
  timeColumn('NEXT RUN', job => job.next_run),
  { title: 'SCHEDULE', value: scheduleInWords, flexible: true },
  { title: 'USER', value: job => job.job.user ?? '-' },
  { title: 'DIRECTORY', value: job => job.job.cwd ?? '-', flexible: true },
  { title: 'COMMAND', value: job => job.job.command, flexible: true },
  { title: 'LAST RESULT', value: job => (job.last ? resultOf(job.last) : '-'), flexible: true },
]

const runColumns: Column<JobRunAnswer>[] = [
  { title: 'RUN', value: run => run.id },
  timeColumn('DUE', run => run.due_at),
  { title: 'STATUS', value: run => (run.manual ? `${run.status}, manual` : run.status) },
  { title: 'EXIT', value: run => run.signal ?? (run.exit_code === null ? '-' : String(run.exit_code)) },
  { title: 'TOOK', value: duration, right: true },
  { title: 'RESULT', value: resultOf, flexible: true },
]

const details = (run: WholeJobRunAnswer): string[] => [
  ...facts([
    ['run', run.id],
    ['job', run.task_id],
    ['status', run.status],
    ['started', when(run.started_at)],
    ['ended', when(run.ended_at)],
    ['result', resultOf(run)],
    ...(run.dropped > 0 ? [['dropped', `${run.dropped} bytes`] as const] : []),
  ]),
  ...(run.output === '' ? [] : quoted(run.output.replace(/\n$/, ''))),
]

export default family(
  'jobs',
  'manage scheduled commands on this host; `tasks` pauses, resumes, cancels and runs them',
  [
    list('list', 'list active and paused jobs', {
      example: '--all',
      isDefault: true,
      input: { all: flag('include completed and cancelled ones') },
      rows: (client, api, { all }) => client.get(url`/jobs?${{ all }}`, api.jobsAnswer),
      columns,
      empty: ({ all }) => (all ? 'No jobs.' : 'No jobs. --all also lists completed and cancelled ones.'),
    }),
    call('add', 'schedule a command on this host, within what hostJobs in the configuration allows', {
      example:
        "backup --command './backup.sh' --cron '0 3 * * *'\npulse --command uptime --every 10m --timeout 5",
      input: {
        name: required('a unique name'),
        command: requiredText('command', 'a command for /bin/sh'),
        ...scheduleInputs,
        cwd: text('directory', 'the working directory (default: the first of hostJobs.directories)'),
        user: text('name', 'the user it runs as (default: the first of hostJobs.users)'),
        timeout: parsed('seconds', 'stop it after this time (default: 600)', positive),
      },
      call: async (client, api, given) => {
        const { name, command, zone, cwd, user, timeout } = given
        const body = { name, command, ...requiredSchedule(given), timezone: zone, cwd, user }
        return client.post('/jobs', { ...body, timeout_seconds: timeout }, api.resultAnswer)
      },
      print: (result, { name }) =>
        `Job ${visible(String(result.task_id))} (${visible(name)}) is scheduled, next run ${when(String(result.next_run))}.`,
    }),
    list('runs', 'list the runs of a job and their results, oldest first', {
      example: '7',
      input: { id: required('the job’s id, from jobs list'), limit: limit(100) },
      rows: (client, api, { id, limit }) => client.get(url`/jobs/${id}/runs?${{ limit }}`, api.jobRunsAnswer),
      columns: runColumns,
      empty: 'The job has not run yet.',
    }),
    call('output', 'show a run of a job with its output', {
      example: '7.1767225600000',
      input: { run: required('the run’s id, from jobs runs') },
      call: (client, api, { run }) => client.get(url`/job-runs/${run}`, api.wholeJobRunAnswer),
      print: details,
    }),
  ],
)
