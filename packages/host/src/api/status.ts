import { z } from 'zod'
import { stepMs } from '../base/metrics/traffic.ts'
import { explained } from '../config.ts'
import { statusAnswer, statusOf } from './answers.ts'
import { countRefused } from './errors.ts'
import type { Host } from './host.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { iso, type Route } from './route.ts'

const count = z.int()
const trafficPoint = z.object({ at: z.iso.datetime(), handled: count, refused: count })

export const overviewAnswer = z.object({
  status: statusAnswer,
  groups: count,
  sessions: z.array(
    z.object({
      run_id: z.string(),
      group: z.string(),
      kind: z.enum(['chat', 'task']),
      state: z.string(),
      started_at: z.iso.datetime().nullable(),
    }),
  ),
  waiting: z
    .object({
      messages: count.describe('not delivered yet'),
      requests: count.describe('of agents, that services or the host are at'),
      approvals: count,
      questions: count,
      errors: count.describe('refused files to look at'),
      deploys: count,
    })
    .describe('what waits for somebody or something'),
  latency: z
    .object({
      p50_us: z.number().nullable(),
      p99_us: z.number().nullable(),
      waited_p50_ms: z.number().nullable(),
      waited_p99_ms: z.number().nullable(),
      count: count.describe('commands since the start'),
    })
    .describe('of the latest 4096: from claimed to durable, and how long the file had lain there before'),
  traffic: z.object({
    step_s: count,
    points: z.array(trafficPoint).describe('of the last hour, since the start, oldest first'),
  }),
  tasks: z.object({ active: count, paused: count, next_run: z.iso.datetime().nullable() }),
})
export type OverviewAnswer = z.infer<typeof overviewAnswer>

export const settingsAnswer = z.array(
  z.object({
    name: z.string(),
    value: z.union([z.string(), z.number()]).nullable().describe('null: unset, or no single value'),
    source: z
      .string()
      .describe('the file, a variable, `command line`, `default`, or the program that started the host'),
    default: z.string(),
    description: z.string(),
    env: z.string().describe('the variable that overrides the file; empty: there is none'),
  }),
)

/** How the host is, all together, and how it is configured. */
export const statusRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/status',
    summary: 'What the host is and does',
    tag: 'host',
    role: 'viewer',
    answer: statusAnswer,
    handle: ({ host }) => statusOf(host),
  }),
  route({
    method: 'get',
    path: '/overview',
    summary: 'Everything worth knowing at a glance',
    tag: 'host',
    role: 'viewer',
    answer: overviewAnswer,
    handle: ({ host }) => overviewOf(host),
  }),
  route({
    method: 'get',
    path: '/settings',
    summary: 'Every value of the configuration, and where it comes from',
    tag: 'host',
    role: 'viewer',
    answer: settingsAnswer,
    handle: ({ host }) =>
      explained(host.config).map(({ name, value, source, default: usual, description, env }) => ({
        name,
        value: withoutPassword(value ?? null),
        source,
        default: usual,
        description,
        env,
      })),
  }),
]

/** An address may have been given with a password in it. */
function withoutPassword(value: string | number | null): string | number | null {
  if (typeof value !== 'string' || !URL.canParse(value)) return value
  const url = new URL(value)
  if (url.username === '' && url.password === '') return value
  url.username = '…'
  url.password = ''
  return decodeURI(url.href)
}

function overviewOf(host: Host): OverviewAnswer {
  const { store, meter } = host
  const status = statusOf(host)
  const [took50 = null, took99 = null] = meter.latestTook.percentiles(0.5, 0.99)
  const [waited50 = null, waited99 = null] = meter.latestWaited.percentiles(0.5, 0.99)
  const nextDue = store.agents.nextDue()
  return {
    status,
    groups: status.groups,
    sessions: (host.agents()?.queue.running() ?? []).map(({ runId, group, kind, state }) => {
      const run = store.agents.run(runId)
      return { run_id: runId, group, kind, state, started_at: run ? iso(run.startedAt) : null }
    }),
    waiting: waitingIn(host),
    latency: {
      p50_us: took50,
      p99_us: took99,
      waited_p50_ms: tenths(waited50),
      waited_p99_ms: tenths(waited99),
      count: meter.handled(),
    },
    traffic: {
      step_s: stepMs / 1000,
      points: meter.traffic.points(Date.now()).map(({ at, ...counted }) => ({ at: iso(at), ...counted })),
    },
    tasks: { ...store.countTasks(), next_run: nextDue === undefined ? null : iso(nextDue) },
  }
}

const tenths = (ms: number | null) => (ms === null ? null : Math.round(ms * 10) / 10)

export function waitingIn(host: Host): OverviewAnswer['waiting'] {
  const { store } = host
  const open = host.services()?.requestQueue.open() ?? []
  return {
    messages: store.countPending(),
    requests: open.filter(({ kind }) => kind === 'service' || kind === 'work').length,
    approvals: store.approvals.open().length,
    questions: store.questions.open().length,
    errors: countRefused(host),
    deploys: store.deploys.open().length,
  }
}
