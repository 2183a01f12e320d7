import { type Dirent, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '@hatchway/spool'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'

/** What was seen of the daemon at one moment, from outside. Bytes, counts and milliseconds. */
export type Sample = Record<string, number>

/** Files come and go while somebody looks. */
function unlessGone<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'ENOTDIR') return otherwise
    throw error
  }
}
const textOf = (path: string) => unlessGone(() => readFileSync(path, 'utf8'), '')
const namesIn = (path: string) => unlessGone(() => readdirSync(path), [])

/** All processes below this one. */
export function childrenOf(pid: number): number[] {
  const direct = namesIn(`/proc/${pid}/task`).flatMap(thread =>
    textOf(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )
  return direct.flatMap(child => [child, ...childrenOf(child)])
}

function processOf(pid: number): Sample {
  const status = textOf(`/proc/${pid}/status`)
  const field = (text: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0)
  const handles = namesIn(`/proc/${pid}/fd`)
  let watches = 0
  for (const handle of handles) {
    const isInotify = unlessGone(() => readlinkSync(`/proc/${pid}/fd/${handle}`), '') === 'anon_inode:inotify'
    if (isInotify) watches += textOf(`/proc/${pid}/fdinfo/${handle}`).split('\ninotify ').length - 1
  }
  return {
    rss: field(status, 'VmRSS') * 1024,
    pss: field(textOf(`/proc/${pid}/smaps_rollup`), 'Pss') * 1024,
    threads: field(status, 'Threads'),
    handles: handles.length,
    watches,
    children: childrenOf(pid).length,
  }
}

interface Tree {
  files: number
  bytes: number
}
function measure(path: string, tree: Tree): Tree {
  const entries: Dirent[] = unlessGone(() => readdirSync(path, { withFileTypes: true }), [])
  for (const entry of entries) {
    const inside = join(path, entry.name)
    tree.files++
    if (entry.isDirectory()) measure(inside, tree)
    else tree.bytes += unlessGone(() => lstatSync(inside).size, 0)
  }
  return tree
}

const sizeOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Files and bytes below the data directory, by part. */
function treeOf(data: string): Sample {
  const layout = layoutOf(data)
  const errors = measure(layout.errors, { files: 0, bytes: 0 })
  const ipc = measure(layout.ipc, { files: 0, bytes: 0 })
  const parts = {
    ipc: { files: ipc.files - errors.files, bytes: ipc.bytes - errors.bytes },
    errors,
    spool: measure(layout.spool, { files: 0, bytes: 0 }),
    state: measure(layout.state, { files: 0, bytes: 0 }),
    groups: measure(layout.groups, { files: 0, bytes: 0 }),
    files: measure(layout.files, { files: 0, bytes: 0 }),
  }
  return {
    ...Object.fromEntries(
      Object.entries(parts).flatMap(([name, { files, bytes }]) => [
        [`${name} files`, files],
        [`${name} bytes`, bytes],
      ]),
    ),
    database: sizeOf(layout.database),
    log: sizeOf(`${layout.database}-wal`),
  }
}

/** What the daemon says of itself. */
export async function metricsOf(data: string): Promise<Sample> {
  const { text } = await overSocket(announcedSocket(data)).request('GET', '/metrics', undefined)
  const value = (name: string) => {
    const line = text.split('\n').find(each => each.startsWith(`hatchway_${name} `))
    return Number(line?.split(' ').at(-1) ?? Number.NaN)
  }
  const waiting = (kind: string) => value(`waiting{kind="${kind}"}`)
  return {
    heap: value('memory_bytes{kind="heap"}'),
    external: value('memory_bytes{kind="external"}'),
    lag: value('event_loop_delay_seconds{of="mean"}') * 1000,
    lagMax: value('event_loop_delay_seconds{of="max"}') * 1000,
    cpu: value('cpu_seconds_total'),
    handled: value('commands_total'),
    tasks: value('tasks{status="active"}') + value('tasks{status="paused"}'),
    undelivered: waiting('messages'),
    requests: waiting('requests') + waiting('approvals') + waiting('questions'),
  }
}

export async function sampleOf(pid: number, data: string): Promise<Sample> {
  return { at: Date.now(), ...(await metricsOf(data)), ...processOf(pid), ...treeOf(data) }
}
