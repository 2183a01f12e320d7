import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '@hatchway/spool'
import { z } from 'zod'
import { nanoclaw } from '../../writers/writers.ts'
import type { GroupsByLife, SoakGroup } from '../plan.ts'
import { type Activity, inTurn, type Poster } from '../poster.ts'
import { reminderText } from '../traffic.ts'
import { writerFor } from './dialects.ts'

const taskList = z.array(z.object({ id: z.union([z.string(), z.number()]), status: z.string() }))
type TaskList = z.infer<typeof taskList>

/** Tasks: one for each group, which is made, changed, paused and cancelled; and some that are due in a moment. */
export function taskActivities(poster: Poster, { of }: GroupsByLife): Activity[] {
  const { random, askFor, say } = poster
  /** by group */
  const tasks = new Map<string, { id: string; paused: boolean; busy: boolean }>()
  let count = 0

  const change = async (group: SoakGroup) => {
    const task = tasks.get(group.folder)
    if (task?.busy) return
    if (!task) {
      const id = `t${poster.sent.process}-${count++}`
      const made = { id, paused: false, busy: true }
      tasks.set(group.folder, made)
      const hourly = { schedule_type: 'interval', schedule_value: '3600000' }
      const payload = { task_id: id, prompt: `once an hour ${id}`, ...hourly }
      await askFor(group, { kind: 'task scheduled', type: 'schedule_task', payload })
      made.busy = false
      return
    }
    task.busy = true
    const about = { task_id: task.id }
    if (random.chance(0.4)) {
      await askFor(group, { kind: 'task cancelled', type: 'cancel_task', payload: about })
      tasks.delete(group.folder)
      return
    }
    if (random.chance(0.5)) {
      const payload = { ...about, prompt: `another prompt ${random.below(1000)}` }
      await askFor(group, { kind: 'task updated', type: 'update_task', payload })
    } else {
      const type = task.paused ? 'resume_task' : 'pause_task'
      await askFor(group, { kind: 'task paused or resumed', type, payload: about })
      task.paused = !task.paused
    }
    task.busy = false
  }

  const shownTo = (group: SoakGroup): TaskList => {
    try {
      return taskList.parse(
        JSON.parse(readFileSync(join(poster.inboxOf(group), 'current_tasks.json'), 'utf8')),
      )
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      throw error
    }
  }
  /** what a group's snapshot has to show before its next change */
  const expected = new Map<string, (tasks: TaskList) => boolean>()

  /** Those who do not know their tasks' ids learn them from their snapshot, as their agents do. */
  const changeFlat = (group: SoakGroup) => {
    const writer = writerFor(group)
    const shown = shownTo(group)
    if (expected.get(group.folder)?.(shown) === false) return
    const [task] = shown
    if (!task) {
      expected.set(group.folder, list => list.length > 0)
      say(group, writer, 'schedule_task', 'flat task scheduled', { mark: `hourly-${poster.written()}` })
      return
    }
    const taskId = String(task.id)
    const statusIs = (status: string) => (list: TaskList) =>
      list.some(other => other.id === task.id && other.status === status)
    if (random.chance(0.5)) {
      expected.set(group.folder, list => !list.some(other => other.id === task.id))
      say(group, writer, 'cancel_task', 'flat task cancelled', { taskId })
    } else if (task.status === 'paused') {
      expected.set(group.folder, statusIs('active'))
      say(group, writer, 'resume_task', 'flat task resumed', { taskId })
    } else {
      expected.set(group.folder, statusIs('paused'))
      say(group, writer, 'pause_task', 'flat task paused', { taskId })
    }
  }

  /** Far enough ahead that a crowded machine does not find it in the past. */
  const soon = () => new Date(Date.now() + 4000 + random.below(4000)).toISOString()
  const remind = (group: SoakGroup) => {
    const number = poster.sent.reminders++
    say(group, nanoclaw, 'schedule_task', 'task that is due soon', {
      mark: `Remind: ${reminderText(poster.sent.process, number)}`,
      schedule: { schedule_type: 'once', schedule_value: soon() },
      taskId: `due-${poster.sent.process}-${number}`,
    })
  }

  return [
    { name: 'task', often: 800, act: inTurn(of('asking'), change) },
    { name: 'flat-task', often: 400, act: inTurn(of('flat'), changeFlat) },
    { name: 'due', often: 40, act: inTurn(of('inhabited'), remind) },
  ]
}
