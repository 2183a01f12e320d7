import type { OverviewAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import { tookOf } from '../tail/row.ts'
import { visible } from '../text.ts'

export function addStatus(program: Command): void {
  common(
    program.command('status').description('how the host is, and what waits, at a glance'),
    'status --json',
  ).action(async (options: CommonOptions) => {
    const { overview, isRunning } = await withClient(options, async client => ({
      overview: await client.overview(),
      isRunning: client.daemon,
    }))
    if (options.json) return printJson({ daemon: isRunning, ...overview })
    for (const [name, value] of factsOf(overview, isRunning))
      await printLine(`${name.padEnd(9)} ${visible(value)}`)
  })
}

const many = (count: number, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`

function factsOf(overview: OverviewAnswer, isRunning: boolean): [string, string][] {
  const { status, waiting, tasks, sessions } = overview
  const next = tasks.next_run === null ? '' : `, the next one runs ${when(tasks.next_run)}`
  const facts: [string, string][] = [
    ['daemon', daemonOf(overview, isRunning)],
    ['data', status.data],
    ['groups', String(overview.groups)],
    ['tasks', `${tasks.active} active, ${tasks.paused} paused${next}`],
    ['waiting', waitingOf(waiting)],
    [
      'refused',
      waiting.errors === 0 ? 'nothing' : `${many(waiting.errors, 'file')}: npx hatchway errors list`,
    ],
  ]
  // The rest is about a daemon; without one, there is this command only.
  if (!isRunning) return facts
  const { p50_us, p99_us } = overview.latency
  const took =
    p50_us === null || p99_us === null ? '' : `, half within ${tookOf(p50_us)}, 99 % within ${tookOf(p99_us)}`
  facts.push(
    ['commands', `${status.handled} since the start, ${status.refused} refused${took}`],
    ['sandbox', status.sandbox?.name ?? 'not chosen yet'],
    ['agents', sessions.length === 0 ? 'none runs' : `${sessions.length} at work`],
    ...sessions.map(({ group, kind, state, run_id }): [string, string] => [
      '',
      `${group}: ${kind}, ${state}, run ${run_id}`,
    ]),
  )
  if (status.model_warning !== null) facts.push(['WARNING', status.model_warning])
  if (status.problem !== null) facts.push(['PROBLEM', status.problem])
  if (status.sandbox?.warning) facts.push(['WARNING', status.sandbox.warning])
  return facts
}

function daemonOf({ status }: OverviewAnswer, isRunning: boolean): string {
  if (!isRunning) return 'none is running. Start one with: npx hatchway up'
  return `process ${status.pid}, version ${status.version}, since ${when(status.started_at)}`
}

function waitingOf({ messages, requests, approvals, questions, deploys }: OverviewAnswer['waiting']): string {
  const parts = [
    { count: approvals, one: 'approval' },
    { count: questions, one: 'question' },
    { count: requests, one: 'request' },
    { count: messages, one: 'message' },
    { count: deploys, one: 'deploy' },
  ].flatMap(({ count, one }) => (count === 0 ? [] : [many(count, one)]))
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}
