import { z } from 'zod'
import { prometheusText } from '../base/metrics/prometheus.ts'
import { version } from '../base/version.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import type { Route } from './route.ts'
import { waitingIn } from './status.ts'

/** For programs that look after the host. They say whether, and nothing else. */
export const healthRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/healthz',
    summary: 'Whether the process answers',
    tag: 'operations',
    role: 'anyone',
    answer: z.literal('ok'),
    gives: 'text/plain',
    handle: (_, { request }) => request.text('ok'),
  }),
  route({
    method: 'get',
    path: '/readyz',
    summary: 'Whether files are being taken; 503 if not',
    tag: 'operations',
    role: 'anyone',
    answer: z.literal('ok'),
    gives: 'text/plain',
    handle: ({ host }, { request }) => (host.isReady() ? request.text('ok') : request.text('not', 503)),
  }),
]

/** On the daemon's socket always; to others where the configuration says so. */
export const metricsRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/metrics',
    summary: 'Figures in Prometheus’ text format',
    tag: 'operations',
    role: 'anyone',
    answer: z.string(),
    gives: 'text/plain',
    handle({ host }, { request }) {
      const { startedAt, groups } = host.status()
      const text = prometheusText(host.meter, {
        version,
        startedAt: Date.parse(startedAt),
        groups,
        sessions: (host.agents()?.queue.running() ?? []).map(({ state }) => state),
        tasks: host.store.countTasks(),
        waiting: waitingIn(host),
      })
      return request.body(text, 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    },
  }),
]
