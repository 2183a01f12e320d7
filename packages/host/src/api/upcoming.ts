import { setImmediate as breathe } from 'node:timers/promises'
import type { Task } from '@hatchway/protocol'
import { following } from '../runs/scheduler/following.ts'

export interface UpcomingRun {
  task_id: string
  group: string
  prompt: string
  at: number
  /** it is the last that was computed of its task, which goes on after it */
  more?: true
}

const most = 1000
/** A task that runs every second must not hide the others; every day of a month can be seen all the same. */
const leastEach = 31
const promptShown = 200
const turnMs = 10

/** When tasks will run if nothing changes, soonest first. Others get their turn while it is being computed. */
export async function upcomingRuns(
  tasks: readonly Task[],
  { from, until }: { from: number; until: number },
): Promise<UpcomingRun[]> {
  const active = tasks.filter(task => task.status === 'active' && task.next_run !== null)
  const each = Math.max(leastEach, Math.ceil(most / Math.max(1, active.length)))
  const runs: UpcomingRun[] = []
  let turnEnds = performance.now() + turnMs
  for (const task of active) {
    const { id, group, prompt } = task
    const run = { task_id: id, group, prompt: prompt.slice(0, promptShown).toWellFormed() }
    // One that is overdue runs as soon as it can.
    let at: number | null = Math.max(Date.parse(task.next_run ?? ''), from)
    for (let count = 1; at !== null && at <= until && count <= each; count++) {
      const next: number | null = following(task, at, at).nextRun
      const isCut = count === each && next !== null && next <= until
      runs.push({ ...run, at, ...(isCut && { more: true }) })
      at = next
      if (performance.now() < turnEnds) continue
      await breathe()
      turnEnds = performance.now() + turnMs
    }
  }
  runs.sort((a, b) => a.at - b.at)
  return runs.length <= most ? runs : cutAt(runs)
}

/** The first of each task and the soonest of the others: the last that is left of a task that loses some says so. */
function cutAt(runs: readonly UpcomingRun[]): UpcomingRun[] {
  const tasks = new Set(runs.map(run => run.task_id))
  let room = Math.max(0, most - tasks.size)
  const seen = new Set<string>()
  const lost = new Set<string>()
  const kept = runs.filter(({ task_id }) => {
    const isFirst = !seen.has(task_id)
    seen.add(task_id)
    if (isFirst || room-- > 0) return true
    lost.add(task_id)
    return false
  })
  for (const [i, run] of [...kept.entries()].reverse()) {
    if (lost.delete(run.task_id)) kept[i] = { ...run, more: true }
  }
  return kept.slice(0, most)
}
