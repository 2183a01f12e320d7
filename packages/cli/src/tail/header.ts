import type { OverviewAnswer } from '@hatchway/host/api'
import { plural, waitingItems } from '../format.ts'
import { cell, type Paint } from './cells.ts'

/** What we know of the daemon. */
export interface HostState {
  data: string
  connection: 'connecting' | 'live' | 'gone'
  /** since when the connection is in this state */
  since: number
  /** the time of the last event */
  heardAt: number
  /** commands in each of the last seconds, the latest last */
  seconds: readonly number[]
  overview: OverviewAnswer | null
}

/** A daemon sends an event every second. */
const silentMs = 5000

const secondsSince = (then: number, now: number) => `${Math.max(0, Math.round((now - then) / 1000))} s`

function connectionInWords({ connection, since, heardAt }: HostState, now: number): string {
  if (connection === 'connecting') return 'connecting…'
  if (connection === 'gone') return `no daemon for ${secondsSince(since, now)}, reconnecting…`
  return now - heardAt > silentMs ? `no response for ${secondsSince(heardAt, now)}` : 'running'
}

/** The first line: the state of the host. */
export function headerOf(host: HostState, columns: number, paint: Paint, now: number): string {
  const parts = [`hatchway: ${connectionInWords(host, now)}`]
  if (host.connection === 'live' && host.seconds.length > 0) {
    const sum = host.seconds.reduce((total, count) => total + count, 0)
    parts.push(`${(sum / host.seconds.length).toFixed(1)}/s`)
  }
  if (host.overview) {
    const { status, waiting } = host.overview
    const items = waitingItems(waiting)
    parts.push(`handled ${status.handled}`, `refused ${status.refused}`, `waiting: ${items || 'nothing'}`)
    if (waiting.errors > 0) parts.push(plural(waiting.errors, 'error'))
  }
  parts.push(host.data)
  return paint('reverse', cell(parts.join('  '), { at: 0, width: columns }))
}
