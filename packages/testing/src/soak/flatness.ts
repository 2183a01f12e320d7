import type { Finding } from '../report.ts'
import type { Sample } from './sampling.ts'

interface Measure {
  name: string
  what: string
  /** which value of a quarter counts: what is collected now and then is known by its floor */
  level?: 'lowest'
  show(value: number): string
  /** the last quarter's median may be this many times the second's, */
  times: number
  /** or this much more, where that is more: what comes and goes is never level to the last one */
  more: number
}

const mega = 1_048_576
const megabytes = (value: number) => `${(value / mega).toFixed(1)} MB`
const whole = (value: number) => String(Math.round(value))
const milliseconds = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`
const memory = { show: megabytes, times: 1.1, more: 4 * mega }
const files = { show: whole, times: 1.05, more: 40 }
const bytes = { show: megabytes, times: 1.05, more: 0.5 * mega }

const measures: readonly Measure[] = [
  { name: 'rss', what: 'memory, resident', ...memory },
  { name: 'pss', what: 'memory, proportional', ...memory },
  { name: 'heap', what: 'memory, heap after collection', level: 'lowest', ...memory, more: 8 * mega },
  { name: 'external', what: 'memory, outside the heap', ...memory },
  { name: 'handles', what: 'open handles', show: whole, times: 1, more: 12 },
  { name: 'watches', what: 'inotify watches', show: whole, times: 1, more: 12 },
  { name: 'threads', what: 'threads', show: whole, times: 1, more: 2 },
  { name: 'children', what: 'processes of sessions', show: whole, times: 1.5, more: 8 },
  { name: 'tasks', what: 'open tasks', show: whole, times: 1.05, more: 20 },
  { name: 'ipc files', what: 'files in ipc/', ...files },
  { name: 'ipc bytes', what: 'bytes in ipc/', ...bytes },
  { name: 'errors files', what: 'files in errors/', ...files },
  { name: 'errors bytes', what: 'bytes in errors/', ...bytes },
  { name: 'spool files', what: 'files in spool/', ...files },
  { name: 'state files', what: 'files in state/', ...files },
  { name: 'state bytes', what: 'bytes in state/', ...bytes },
  { name: 'groups files', what: 'files in groups/', ...files },
  { name: 'groups bytes', what: 'bytes in groups/', ...bytes },
  { name: 'files files', what: 'files in files/', ...files },
  { name: 'files bytes', what: 'bytes in files/', ...bytes },
  { name: 'database', what: 'the database', ...bytes },
  { name: 'log', what: 'its write-ahead log', ...bytes },
  { name: 'undelivered', what: 'messages not delivered yet', show: whole, times: 1, more: 20 },
  { name: 'requests', what: 'requests not answered yet', show: whole, times: 1, more: 20 },
  { name: 'p50', what: 'request to receipt, p50', show: milliseconds, times: 1.5, more: 1 },
  { name: 'p99', what: 'request to receipt, p99', show: milliseconds, times: 2, more: 10 },
  { name: 'chat', what: 'message to reply, p50', show: milliseconds, times: 1.5, more: 200 },
  { name: 'lag', what: 'event loop, mean delay', show: milliseconds, times: 1.5, more: 1 },
  {
    name: 'load',
    what: 'processor time, of one',
    show: value => `${(value * 100).toFixed(0)} %`,
    times: 1.3,
    more: 0.1,
  },
]

export function median(values: readonly number[]): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const lowest = (values: readonly number[]) => Math.min(...values.filter(Number.isFinite))

const signs = '▁▂▃▄▅▆▇█'
const columns = 20

/** The course of it in a line: between zero and the highest, so that what is flat looks flat. */
export function sparkline(values: readonly number[]): string {
  const step = Math.max(1, values.length / columns)
  const points = Array.from({ length: Math.min(columns, values.length) }, (_, i) =>
    median(
      values.slice(Math.floor(i * step), Math.max(Math.floor(i * step) + 1, Math.floor((i + 1) * step))),
    ),
  )
  const highest = Math.max(...points.filter(Number.isFinite), 0)
  return points
    .map(point => {
      if (!Number.isFinite(point)) return ' '
      const place = highest === 0 ? 0 : Math.round((point / highest) * (signs.length - 1))
      return signs[place] ?? ' '
    })
    .join('')
}

/** The last quarter beside the second; in the first everything fills up. */
export function flatness(samples: readonly Sample[]): Finding[] {
  const quarter = (number: number) =>
    samples.slice(Math.floor((samples.length * number) / 4), Math.floor((samples.length * (number + 1)) / 4))
  const [second, last] = [quarter(1), quarter(3)]
  return measures.map(({ name, what, level, show, times, more }) => {
    const levelOf = level === 'lowest' ? lowest : median
    const all = samples.map(sample => sample[name] ?? Number.NaN)
    const before = levelOf(second.map(sample => sample[name] ?? Number.NaN))
    const after = levelOf(last.map(sample => sample[name] ?? Number.NaN))
    const bound = `≤ ${times === 1 ? '' : `${times} × or `}+ ${show(more)}`
    if (!Number.isFinite(before) || !Number.isFinite(after)) {
      return { what, seen: 'too short to tell', bound, ok: undefined }
    }
    const change = before === 0 ? '' : ` (${(after / before).toFixed(2)} ×)`
    return {
      what,
      seen: `${show(before)} → ${show(after)}${change} ${sparkline(all)}`,
      bound,
      ok: after <= Math.max(before * times, before + more),
    }
  })
}
