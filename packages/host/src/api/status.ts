import { stepMs } from '../base/metrics/traffic.ts'
import { livenessWarning } from '../chat/channels/liveness.ts'
import { explained } from '../config.ts'
import { modelsInUse } from '../runs/model-gateway/health.ts'
import { isoOf } from '../store/entities/instant.ts'
import {
  type OverviewAnswer,
  overviewAnswer,
  type StatusAnswer,
  settingsAnswer,
  statusAnswer,
} from './answers.ts'
import { countRefused } from './errors.ts'
import type { Host, HostContext } from './host.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('host')

/** How the host is, all together, and how it is configured. */
export const statusRoutes: readonly Route<HostContext>[] = [
  route.get('/status', {
    summary: 'What the host is and does',
    role: 'viewer',
    answer: statusAnswer,
    handle: ({ host }) => statusOf(host),
  }),
  route.get('/overview', {
    summary: 'Everything worth knowing at a glance',
    role: 'viewer',
    answer: overviewAnswer,
    handle: ({ host }) => overviewOf(host),
  }),
  route.get('/settings', {
    summary: 'Every value of the configuration, and where it comes from',
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

const statusOf = (host: Host): StatusAnswer => {
  const { startedAt, ...status } = host.status()
  const choice = host.agents()?.choice()
  return {
    ...status,
    started_at: startedAt,
    uptime_s: Math.max(0, Math.floor((Date.now() - Date.parse(startedAt)) / 1000)),
    agents_enabled: host.config.agents.enabled === 'yes',
    sandbox: choice
      ? {
          name: choice.sandbox?.name ?? 'none',
          isolated: choice.sandbox?.isolated ?? false,
          warning: choice.warning ?? (choice.sandbox ? null : choice.reason),
        }
      : null,
    model_warning: host.agents()?.modelWarning() ?? null,
    model_ready:
      modelsInUse(host.config).some(({ folder }) => folder === undefined) &&
      host.agents() !== undefined &&
      host.agents()?.modelWarning() === undefined,
    channel_warning: livenessWarning(host.chats?.liveness() ?? [], Date.now()) ?? null,
    problem: host.retries.problem() ?? null,
  }
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
      return { run_id: runId, group, kind, state, started_at: run ? isoOf(run.startedAt) : null }
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
      points: meter.traffic.points(Date.now()).map(({ at, ...counted }) => ({ at: isoOf(at), ...counted })),
    },
    tasks: { ...store.countTasks(), next_run: nextDue === undefined ? null : isoOf(nextDue) },
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
    deploys: host.plugins.waiting().deploys ?? 0,
  }
}
