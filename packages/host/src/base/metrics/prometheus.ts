import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Histogram } from './histogram.ts'
import type { Meter } from './meter.ts'

/** What is looked up when it is asked for. Kinds are of closed lists: no label has values without end. */
export interface Gauges {
  version: string
  startedAt: number
  groups: number
  sessions: readonly string[]
  tasks: { active: number; paused: number }
  waiting: Readonly<Record<string, number>>
  /** of models, today (UTC) */
  usage: readonly ModelUsage[]
  /** those that can lose their platform */
  channels: readonly { name: string; isConnected: boolean; isLimited: boolean }[]
}

export interface ModelUsage {
  group: string
  model: string
  input: number
  cached: number
  output: number
  /** undefined: no price is known */
  cost: number | undefined
}

type Sample = readonly [suffix: string, labels: string, value: number]

const escaped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
const labels = (values: Readonly<Record<string, string>>) =>
  `{${Object.entries(values)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',')}}`
const labelled = (name: string, value: string) => labels({ [name]: value })

const numeral = (value: number) =>
  value === Number.POSITIVE_INFINITY ? '+Inf' : Number.isFinite(value) ? String(value) : 'NaN'

const family = (
  name: string,
  type: 'counter' | 'gauge' | 'histogram',
  help: string,
  samples: readonly Sample[],
): string =>
  [
    `# HELP hatchway_${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
    `# TYPE hatchway_${name} ${type}`,
    ...samples.map(([suffix, labels, value]) => `hatchway_${name}${suffix}${labels} ${numeral(value)}`),
  ].join('\n')

const one = (value: number): Sample[] => [['', '', value]]

/** `scale` makes seconds of the unit it counts in. */
function buckets(histogram: Histogram, scale: number): Sample[] {
  const counts = histogram.cumulative()
  const bounds = [...histogram.bounds.map(bound => bound / scale), Number.POSITIVE_INFINITY]
  return [
    ...bounds.map((bound, place): Sample => ['_bucket', labelled('le', numeral(bound)), counts[place] ?? 0]),
    ['_sum', '', histogram.sum() / scale],
    ['_count', '', counts.at(-1) ?? 0],
  ]
}

let loop: ReturnType<typeof monitorEventLoopDelay> | undefined

/** How late the event loop was since it was last asked; only measured once somebody has asked, as that costs wake-ups. */
function loopDelay(): { mean: number; max: number } {
  if (!loop) {
    loop = monitorEventLoopDelay({ resolution: 50 })
    loop.enable()
    return { mean: 0, max: 0 }
  }
  const resolution = 50e6
  const late = (ns: number) => (Number.isFinite(ns) ? Math.max(0, ns - resolution) / 1e9 : 0)
  const found = loop.count === 0 ? { mean: 0, max: 0 } : { mean: late(loop.mean), max: late(loop.max) }
  loop.reset()
  return found
}

const sessionStates = ['working', 'idle', 'stopping', 'closing']

const commandFamilies = (meter: Meter): string[] => [
  family('commands_total', 'counter', 'Commands that were handled.', one(meter.handled())),
  family(
    'commands_refused_total',
    'counter',
    'Commands that were refused, by code.',
    meter.refusedBy().map(({ code, count }): Sample => ['', labelled('code', code), count]),
  ),
  family(
    'command_duration_seconds',
    'histogram',
    'From the claim of its batch until a command was durable.',
    buckets(meter.took, 1e6),
  ),
  family(
    'command_wait_seconds',
    'histogram',
    'How long files lay there before they were decided, by their writers’ clock.',
    buckets(meter.waited, 1000),
  ),
  family('batch_files', 'histogram', 'Commands that were made durable together.', buckets(meter.batches, 1)),
]

const stateFamilies = (gauges: Gauges): string[] => [
  family('groups', 'gauge', 'Registered groups.', one(gauges.groups)),
  family(
    'sessions',
    'gauge',
    'Sessions of agents, by state.',
    sessionStates.map((state): Sample => {
      const count = gauges.sessions.filter(found => found === state).length
      return ['', labelled('state', state), count]
    }),
  ),
  family('tasks', 'gauge', 'Open tasks, by status.', [
    ['', labelled('status', 'active'), gauges.tasks.active],
    ['', labelled('status', 'paused'), gauges.tasks.paused],
  ]),
  family(
    'waiting',
    'gauge',
    'What waits for somebody or something, by kind.',
    Object.entries(gauges.waiting).map(([kind, count]): Sample => ['', labelled('kind', kind), count]),
  ),
]

/** A family without samples is left out: nobody has added a chat app. */
const channelFamilies = ({ channels }: Gauges): string[] =>
  channels.length === 0
    ? []
    : [
        family(
          'channel_connected',
          'gauge',
          'Whether the channel is connected to its platform.',
          channels.map(
            ({ name, isConnected }): Sample => ['', labelled('channel', name), Number(isConnected)],
          ),
        ),
        family(
          'channel_limited',
          'gauge',
          'Whether messages are held back, as the channel’s platform has asked to wait.',
          channels.map(({ name, isLimited }): Sample => ['', labelled('channel', name), Number(isLimited)]),
        ),
      ]

/** Agents choose the names of models, so there could be labels without end: the largest have their own. */
const mostLabelled = 200

function bounded(usage: readonly ModelUsage[]): readonly ModelUsage[] {
  const all = usage.toSorted((a, b) => b.input + b.output - a.input - a.output)
  const rest = all.slice(mostLabelled)
  if (rest.length === 0) return all
  const sum = (of: (used: ModelUsage) => number) => rest.reduce((total, used) => total + of(used), 0)
  const others: ModelUsage = {
    group: '(other)',
    model: '(other)',
    input: sum(used => used.input),
    cached: sum(used => used.cached),
    output: sum(used => used.output),
    cost: rest.some(({ cost }) => cost !== undefined) ? sum(used => used.cost ?? 0) : undefined,
  }
  return [...all.slice(0, mostLabelled), others]
}

/** Gauges, as they begin anew each day: what was kept of a month would be read for every scrape. */
function usageFamilies(gauges: Gauges): string[] {
  const usage = bounded(gauges.usage)
  const priced = usage.flatMap(({ group, model, cost }) =>
    cost === undefined ? [] : [{ group, model, cost }],
  )
  const tokens = usage.flatMap(({ group, model, input, cached, output }) =>
    Object.entries({ input, cached, output }).map(
      ([kind, value]): Sample => ['', labels({ group, model, kind }), value],
    ),
  )
  const tokenFamily = family(
    'model_tokens_today',
    'gauge',
    'Tokens that agents used today (UTC), by group, model and kind; `cached` is a part of `input`.',
    tokens,
  )
  const costFamily = family(
    'model_cost_today',
    'gauge',
    'What they cost today (UTC), by the configured prices.',
    priced.map(({ cost, ...of }): Sample => ['', labels(of), cost]),
  )
  return [...(tokens.length > 0 ? [tokenFamily] : []), ...(priced.length > 0 ? [costFamily] : [])]
}

function processFamilies(): string[] {
  const memory = process.memoryUsage()
  const delay = loopDelay()
  const cpu = process.cpuUsage()
  return [
    family('memory_bytes', 'gauge', 'Memory of the process, by kind.', [
      ['', labelled('kind', 'resident'), memory.rss],
      ['', labelled('kind', 'heap'), memory.heapUsed],
      ['', labelled('kind', 'external'), memory.external],
    ]),
    family(
      'cpu_seconds_total',
      'counter',
      'Processor time of the process.',
      one((cpu.user + cpu.system) / 1e6),
    ),
    family('event_loop_delay_seconds', 'gauge', 'How late the event loop was since the last scrape.', [
      ['', labelled('of', 'mean'), delay.mean],
      ['', labelled('of', 'max'), delay.max],
    ]),
  ]
}

/** In Prometheus' text format, version 0.0.4. */
export function prometheusText(meter: Meter, gauges: Gauges): string {
  const families = [
    family('info', 'gauge', 'The version that runs.', [['', labelled('version', gauges.version), 1]]),
    family('start_time_seconds', 'gauge', 'When the host was started.', one(gauges.startedAt / 1000)),
    ...commandFamilies(meter),
    ...stateFamilies(gauges),
    ...usageFamilies(gauges),
    ...channelFamilies(gauges),
    ...processFamilies(),
  ]
  return `${families.join('\n')}\n`
}
