import { join } from 'node:path'
import { eventually, readJson } from './boxes.ts'
import { check, isTime, must, mustHave, type Row, rowsOf } from './evidence.ts'
import type { Kit } from './kit.ts'

/** As the project's own `list_tasks` does: it reads the file, and believes it. */
export const listed = (kit: Kit): Row[] => rowsOf(readJson(join(kit.ipc, 'current_tasks.json')))

const withPrompt = (kit: Kit, prompt: string): Row | undefined =>
  listed(kit).find(task => task.prompt === prompt)

const appears = (kit: Kit, prompt: string) =>
  eventually(`${prompt} in current_tasks.json`, () => withPrompt(kit, prompt))

const becomes = (kit: Kit, prompt: string, status: string) =>
  eventually(`${prompt} is ${status}`, () => withPrompt(kit, prompt)?.status === status)

function checkTask(kit: Kit, task: Row): void {
  const { always, maybe, group } = kit.taskKeys
  mustHave(task, always, maybe)
  for (const key of ['id', group, 'prompt', 'schedule_type', 'schedule_value', 'status'])
    must(typeof task[key] === 'string', `${key} is ${typeof task[key]}`)
  must(task.next_run === null || isTime(task.next_run), `next_run is ${task.next_run}`)
}

/** far enough away that none of them runs */
const never = '2099-01-31T09:30:00'

export async function keepTasks(kit: Kit): Promise<void> {
  const { folder } = kit.who
  const name = (what: string) => `${folder}: ${what}`
  kit.schedule({ prompt: name('cron'), type: 'cron', value: '0 9 1 1 *', mode: 'group' })
  kit.schedule({ prompt: name('interval'), type: 'interval', value: '31536000000', mode: 'isolated' })
  kit.schedule({ prompt: name('once'), type: 'once', value: `${never}Z`, mode: 'isolated' })
  kit.schedule({ prompt: name('once local'), type: 'once', value: never, mode: 'isolated' })
  kit.schedule({ prompt: name('no mode'), type: 'once', value: `${never}Z` })
  if (kit.takesAnyMode)
    kit.schedule({ prompt: name('bad mode'), type: 'once', value: `${never}Z`, mode: 'alone' })
  const rich = { id: `${folder}-own-id`, script: 'echo 1', model: 'claude-sonnet-4-5' }
  kit.schedule({ prompt: name('rich'), type: 'once', value: `${never}Z`, mode: 'isolated', ...rich })
  kit.schedule({ prompt: name('bad'), type: 'cron', value: 'every now and then', mode: 'group' })
  const target = { jid: 'local:third', folder: 'third' }
  kit.schedule({ prompt: name('for third'), type: 'once', value: `${never}Z`, mode: 'isolated', target })
  await check('tasks-live', () => appears(kit, name('once')).then(({ id }) => id))
  await check('tasks-shape', async () => {
    // The last of those that every project can schedule; until it is there the list may be shorter.
    await appears(kit, name('no mode'))
    const tasks = listed(kit)
    must(tasks.length > 3, `${tasks.length} tasks`)
    for (const task of tasks) checkTask(kit, task)
    return Object.keys(tasks[0] ?? {}).join(' ')
  })
  if ([...kit.taskKeys.maybe, ...kit.taskKeys.always].includes('model'))
    await check('task-model', async () => {
      const { model } = await appears(kit, name('rich'))
      must(model === 'claude-sonnet-4-5', `model is ${model}`)
    })

  if ([...kit.taskKeys.maybe, ...kit.taskKeys.always].includes('script'))
    await check('task-script', async () => {
      const { script } = await appears(kit, name('rich'))
      must(script === 'echo 1', `script is ${script}`)
    })

  const id = String((await appears(kit, name('cron'))).id)
  kit.pause(id)
  await check('pause', () => becomes(kit, name('cron'), 'paused'))
  kit.resume(id)
  await check('resume', () => becomes(kit, name('cron'), 'active'))
  await check('number', () => {
    must(Number.isSafeInteger(Number(id)), `the id is ${id}, which is no number`)
    return id
  })
  if (kit.update) {
    kit.update(id, { prompt: name('changed'), type: 'cron', value: '0 10 1 1 *' })
    await check('update', async () => {
      const { schedule_value } = await appears(kit, name('changed'))
      must(schedule_value === '0 10 1 1 *', `schedule_value is ${schedule_value}`)
    })
    kit.update(String((await appears(kit, name('rich'))).id), { script: '' })
    kit.update(String((await appears(kit, name('interval'))).id), { status: 'paused' })
  }
  const goes = String((await appears(kit, name('once local'))).id)
  kit.cancel(goes)
  await check('cancel', () =>
    eventually('it is gone from current_tasks.json', () => listed(kit).every(task => task.id !== goes)),
  )
}

/** The main group changes a task of another's. */
export async function oversee(kit: Kit, id: string): Promise<void> {
  await check('tasks-main', () => {
    const all = new Set(listed(kit).map(task => task[kit.taskKeys.group]))
    must(all.has('main') && all.has('other'), `tasks of ${[...all].join(', ')}`)
  })
  kit.pause(id)
}

/** Another group tries that with one of the main group's. */
export async function meddle(kit: Kit, id: string): Promise<void> {
  await check('tasks-own', () => {
    const all = new Set(listed(kit).map(task => task[kit.taskKeys.group]))
    must(all.size === 1 && all.has('other'), `tasks of ${[...all].join(', ')}`)
  })
  kit.cancel(id)
}
