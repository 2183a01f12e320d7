import type { OverviewAnswer } from '@hatchway/host/api'
import { cell, type Paint } from './cells.ts'

/** What is known of the daemon. */
export interface HostState {
  data: string
  connection: 'looking' | 'live' | 'gone'
  /** since when it is so */
  since: number
  /** when it was last heard of */
  heardAt: number
  /** commands in each of the last seconds, the latest last */
  seconds: readonly number[]
  overview: OverviewAnswer | null
}

/** Every second there is something to hear of a daemon that works. */
const silentMs = 5000

const secondsSince = (then: number, now: number) => `${Math.max(0, Math.round((now - then) / 1000))} s`

function connectionOf({ connection, since, heardAt }: HostState, now: number): string {
  if (connection === 'looking') return 'looking for the daemon'
  if (connection === 'gone') return `no daemon for ${secondsSince(since, now)}`
  return now - heardAt > silentMs ? `silent for ${secondsSince(heardAt, now)}` : 'running'
}

const many = (count: number, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`

/** The first line: how the host is, as far as it is known. */
export function headerOf(host: HostState, columns: number, paint: Paint, now: number): string {
  const parts = [`hatchway: ${connectionOf(host, now)}`]
  if (host.connection === 'live' && host.seconds.length > 0) {
    const sum = host.seconds.reduce((total, count) => total + count, 0)
    parts.push(`${(sum / host.seconds.length).toFixed(1)}/s`)
  }
  if (host.overview) {
    const { status, waiting } = host.overview
    parts.push(`handled ${status.handled}`, `refused ${status.refused}`)
    const { messages, requests, approvals, questions, errors, deploys } = waiting
    const pending = messages + requests + approvals + questions + deploys
    const what = [
      ...(approvals > 0 ? [many(approvals, 'approval')] : []),
      ...(questions > 0 ? [many(questions, 'question')] : []),
      ...(requests > 0 ? [many(requests, 'request')] : []),
      ...(messages > 0 ? [many(messages, 'message')] : []),
      ...(deploys > 0 ? [many(deploys, 'deploy')] : []),
    ]
    parts.push(`pending ${pending}${what.length > 0 ? ` (${what.join(', ')})` : ''}`)
    if (errors > 0) parts.push(many(errors, 'error'))
  }
  parts.push(host.data)
  return paint('reverse', cell(parts.join('  '), { at: 0, width: columns }))
}
