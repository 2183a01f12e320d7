import { setImmediate as breathe } from 'node:timers/promises'
import type { Task } from '@hatchway/protocol'
import { following } from '../scheduler/following.ts'

export interface UpcomingRun {
  task_id: string
  group: string
  prompt: string
  at: number
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
    for (let count = 0; at !== null && at <= until && count < each; count++) {
      runs.push({ ...run, at })
      at = following(task, at, at).nextRun
      if (performance.now() < turnEnds) continue
      await breathe()
      turnEnds = performance.now() + turnMs
    }
  }
  return runs.sort((a, b) => a.at - b.at).slice(0, most)
}
