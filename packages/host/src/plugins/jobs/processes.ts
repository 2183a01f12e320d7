import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessEntry, platform } from '../../base/platform.ts'
import { markedProcesses, markOf, signal } from '../../base/processes.ts'

/**
 * The processes of jobs. A job's are those of its process group, those that carry its mark, wherever they went, and
 * what either has started. One that left the group and lost its mark is known by its parent, and from then on by
 * itself, as its parent may end first.
 */
const kind = 'job'

export const jobMark = (installation: string, runId: string): string => markOf(kind, installation, runId)

export interface JobProcesses {
  /** whether they end by themselves within this time */
  areOver(ms: number): Promise<boolean>
  /** asks them to end, then ends them; whether all are gone */
  end(graceMs: number): Promise<boolean>
}

/** how long one may take to go once it cannot say no */
const lastMs = 10_000

const nameOf = ({ pid, startTime }: ProcessEntry) => `${pid}@${startTime}`

/** Everything that belongs to them, as it is now; `firstOf` tells them by what they carry. */
function follow(firstOf: (all: readonly ProcessEntry[]) => ReadonlySet<number>): JobProcesses {
  let known: ReadonlySet<string> = new Set()

  const members = (): number[] => {
    const all = platform.processes().filter(({ pid }) => pid !== process.pid)
    const found = new Set(firstOf(all))
    for (const entry of all) if (known.has(nameOf(entry))) found.add(entry.pid)
    for (let before = -1; before !== found.size; ) {
      before = found.size
      for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
    }
    const running = all.filter(({ pid }) => found.has(pid))
    known = new Set(running.map(nameOf))
    return running.map(({ pid }) => pid)
  }
  return {
    areOver: ms => comesTrue(ms, () => members().length === 0),
    async end(graceMs) {
      for (const pid of members()) signal(pid, 'SIGTERM')
      if (await comesTrue(graceMs, () => members().length === 0)) return true
      // What forks while it is being ended is met again in the next round.
      return comesTrue(lastMs, () => {
        const left = members()
        for (const pid of left) signal(pid, 'SIGKILL')
        return left.length === 0
      })
    },
  }
}

/** A look costs a while where many processes run, and others want to go on: most of the time is spent waiting. */
async function comesTrue(ms: number, condition: () => boolean): Promise<boolean> {
  const end = performance.now() + ms
  for (;;) {
    const before = performance.now()
    if (condition()) return true
    const after = performance.now()
    if (after > end) return false
    await sleep(Math.max(25, 10 * (after - before)))
  }
}

export function processesOf(installation: string, runId: string, group: number): JobProcesses {
  let hasGroup = true
  return follow(all => {
    const found = new Set(markedProcesses(kind, installation, runId).map(({ pid }) => pid))
    const inGroup = hasGroup ? all.filter(entry => entry.group === group) : []
    // Once nobody is left in it, its number may become somebody else's.
    hasGroup = inGroup.length > 0
    for (const { pid } of inGroup) found.add(pid)
    return found
  })
}

/** Ends what an earlier process has left of jobs of this installation; the ids of those runs. */
export async function endOrphanedJobs(installation: string, graceMs: number): Promise<string[]> {
  const orphans = () => markedProcesses(kind, installation)
  const found = new Set(orphans().map(({ runId }) => runId))
  if (found.size > 0) await follow(() => new Set(orphans().map(({ pid }) => pid))).end(graceMs)
  return [...found]
}
