import type { OverviewAnswer } from '@hatchway/host/api'
import { call } from '../command.ts'
import { type Fact, facts } from '../facts.ts'
import { milliseconds, plural, waitingItems, when } from '../format.ts'

export default call('status', 'show the state of the host, and what is waiting', {
  example: '--json',
  call: async client => {
    const overview = await client.overview()
    return { daemon: client.daemon, ...overview }
  },
  print: overview => facts([...stored(overview), ...(overview.daemon ? running(overview) : [])]),
})

type Answer = OverviewAnswer & { daemon: boolean }

/** What the data directory knows, also without a daemon. */
function stored({ daemon, status, groups, tasks, waiting }: Answer): Fact[] {
  const next = tasks.next_run === null ? '' : `, next run ${when(tasks.next_run)}`
  return [
    [
      'daemon',
      daemon
        ? `process ${status.pid}, version ${status.version}, since ${when(status.started_at)}`
        : 'not running. Start it with: npx hatchway up',
    ],
    ['data', status.data],
    ['groups', String(groups)],
    ['tasks', `${tasks.active} active, ${tasks.paused} paused${next}`],
    ['waiting', waitingItems(waiting) || 'nothing'],
    [
      'refused',
      waiting.errors === 0 ? 'nothing' : `${plural(waiting.errors, 'file')}: npx hatchway errors list`,
    ],
  ]
}

function running({ status, latency, sessions }: Answer): Fact[] {
  const { p50_us, p99_us } = latency
  const times =
    p50_us === null || p99_us === null
      ? ''
      : `; decision time: median ${milliseconds(p50_us)}, p99 ${milliseconds(p99_us)}`
  return [
    ['commands', `${status.handled} since the start, ${status.refused} refused${times}`],
    ['sandbox', status.sandbox?.name ?? 'not chosen yet'],
    ['agents', sessions.length === 0 ? 'none running' : `${sessions.length} running`],
    ...sessions.map(
      ({ group, kind, state, run_id }): Fact => ['', `${group}: ${kind}, ${state}, run ${run_id}`],
    ),
    ...[
      ['WARNING', status.model_warning] as const,
      ['WARNING', status.channel_warning] as const,
      ['PROBLEM', status.problem] as const,
      ['WARNING', status.sandbox?.warning] as const,
    ].flatMap(([name, text]): Fact[] => (text ? [[name, text]] : [])),
  ]
}
