import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { platform } from '../../../host/src/base/platform.ts'
import { markVariable } from '../../../host/src/base/processes.ts'

/** What the host itself takes of the machine: the daemon, and its children that are no part of a sandbox. */
export interface ResourceUsage {
  at: number
  rssMb: number
  handles: number
  watches: number
  threads: number
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // It is over.
    return ''
  }
}

const isSandbox = (pid: number): boolean =>
  /^\S*bwrap\0/.test(read(`/proc/${pid}/cmdline`)) ||
  read(`/proc/${pid}/environ`).includes(`${markVariable}=`)

function own(daemon: number): number[] {
  const running = platform.processes()
  const found = [daemon]
  for (const pid of found)
    for (const entry of running) if (entry.parent === pid && !isSandbox(entry.pid)) found.push(entry.pid)
  return found
}

const handlesOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    return []
  }
}
const watchesOf = (pid: number, fd: string): number => {
  try {
    if (!readlinkSync(`/proc/${pid}/fd/${fd}`).includes('inotify')) return 0
  } catch {
    return 0
  }
  return read(`/proc/${pid}/fdinfo/${fd}`).split('inotify wd:').length - 1
}

export function resourceUsageOf(daemon: number): ResourceUsage {
  const usage: ResourceUsage = { at: Date.now(), rssMb: 0, handles: 0, watches: 0, threads: 0 }
  for (const pid of own(daemon)) {
    const status = read(`/proc/${pid}/status`)
    usage.rssMb += Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024
    usage.threads += Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    // What a command line of an engine has open is its own.
    if (pid !== daemon) continue
    const handles = handlesOf(pid)
    usage.handles += handles.length
    usage.watches += handles.reduce((sum, fd) => sum + watchesOf(pid, fd), 0)
  }
  return usage
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Written down twice a second until it is told to end. */
export function watchResourceUsage(daemon: number) {
  const all: ResourceUsage[] = []
  const timer = setInterval(() => all.push(resourceUsageOf(daemon)), 500)
  return {
    stop: () => clearInterval(timer),
    /** the middle of a stretch of it, each a share of the whole */
    middle(what: Exclude<keyof ResourceUsage, 'at'>, from: number, to: number): number {
      const stretch = all.slice(Math.floor(all.length * from), Math.ceil(all.length * to))
      return Math.round(median(stretch.map(one => one[what])))
    },
    most: (what: Exclude<keyof ResourceUsage, 'at'>) => Math.round(Math.max(0, ...all.map(one => one[what]))),
    series: (): readonly ResourceUsage[] => all,
  }
}
