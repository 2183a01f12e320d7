import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Task } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'
import { createBriefTasks } from './brief-tasks.ts'

const hourly = { schedule_type: 'interval', schedule_value: '3600000' }

async function open(limits: Parameters<typeof openLive>[0] = {}): Promise<Live> {
  const live = await openLive(limits)
  onTestFinished(() => live.close())
  for (const folder of ['main', 'greedy', 'calm']) {
    await live.host.addGroup({
      ...{ folder, jid: `${folder}@chat`, name: folder, main: folder === 'main', dialect: 'hatchway' },
    })
  }
  await live.start()
  return live
}
let counter = 0
/** Posts a command, and reads its answer. */
async function ask({ layout }: Live, folder: string, type: string, payload: object) {
  const id = `r-${++counter}`
  post(join(layout.ipc, folder, 'tasks'), JSON.stringify({ version: 1, id, type, payload }))
  const path = join(layout.ipc, folder, 'responses', `${id}.json`)
  await until('it is answered', () => statSync(path, { throwIfNoEntry: false }) !== undefined)
  return JSON.parse(readFileSync(path, 'utf8'))
}
const tasksSeen = ({ layout }: Live, folder: string): { text: string; tasks: Task[] } => {
  const text = readFileSync(join(layout.ipc, folder, 'current_tasks.json'), 'utf8')
  return { text, tasks: JSON.parse(text) }
}

test('huge tasks of one group are refused at a megabyte, and the main group sees their beginnings', async () => {
  const live = await open()
  const prompt = 'x'.repeat(199_000)
  const answers = []
  for (let i = 0; i < 12; i++) answers.push(await ask(live, 'greedy', 'schedule_task', { prompt, ...hourly }))
  expect(answers.filter(({ ok }) => ok)).toHaveLength(5)
  expect(answers.at(-1)).toMatchObject({ error: { code: 'quota_exceeded' } })
  expect(tasksSeen(live, 'greedy').tasks.map(task => task.prompt)).toEqual(Array(5).fill(prompt))

  const calm = { prompt: 'x'.repeat(5000), ...hourly }
  expect(await ask(live, 'calm', 'schedule_task', calm)).toMatchObject({ ok: true })
  expect(await ask(live, 'main', 'schedule_task', calm)).toMatchObject({ ok: true })
  const { text, tasks } = tasksSeen(live, 'main')
  expect(text.length).toBeLessThan(20_000)
  expect(tasks).toHaveLength(7)
  const seen = new Map(tasks.map(task => [task.group, task.prompt]))
  expect(seen.get('greedy')).toBe(`${'x'.repeat(200)} … (cut; 199000 bytes)`)
  expect(seen.get('calm')).toBe(`${'x'.repeat(200)} … (cut; 5000 bytes)`)
  expect(seen.get('main')).toBe(calm.prompt)
})

test('large messages are refused when the group’s kept ones hold twice what they may', async () => {
  const live = await open({ limits: { messageBytes: 65_536 } })
  const large = { text: 'x'.repeat(50_000) }
  expect(await ask(live, 'greedy', 'send_message', large)).toMatchObject({ ok: true })
  expect(await ask(live, 'greedy', 'send_message', large)).toMatchObject({ ok: true })
  expect(await ask(live, 'greedy', 'send_message', large)).toMatchObject({
    error: { code: 'quota_exceeded' },
  })
  const aloud = { text: 'short', speech: large }
  expect(await ask(live, 'greedy', 'send_message', aloud)).toMatchObject({
    error: { code: 'quota_exceeded' },
  })
  expect(await ask(live, 'greedy', 'send_message', { text: 'x'.repeat(1024) })).toMatchObject({ ok: true })
  expect(await ask(live, 'calm', 'send_message', large)).toMatchObject({ ok: true })
})

test('open requests are limited by their bytes', async () => {
  const live = await open({ limits: { openRequestBytes: 10_000 } })
  const { layout, host } = live
  const questions = [{ question: 'q'.repeat(4000) }]
  for (let i = 0; i < 4; i++) {
    const body = JSON.stringify({ version: 1, id: `q-${i}`, type: 'ask_user', payload: { questions } })
    post(join(layout.ipc, 'greedy', 'tasks'), body)
  }
  const refused = join(layout.ipc, 'greedy', 'responses', 'q-3.json')
  await until('the last is refused', () => statSync(refused, { throwIfNoEntry: false }) !== undefined)
  expect(JSON.parse(readFileSync(refused, 'utf8'))).toMatchObject({ error: { code: 'quota_exceeded' } })
  expect(host.store.requests.unfinished()).toHaveLength(3)
})

test('a change in one group reads no other group’s tasks', async () => {
  const { host } = await open()
  const { store } = host
  const about: Omit<Task, 'id' | 'group'> = {
    ...{ jid: 'x', created_by: 'x', prompt: 'p'.repeat(1000), script: null, model: null, timezone: 'UTC' },
    ...{ schedule_type: 'interval', schedule_value: '3600000', context_mode: 'group', status: 'active' },
    ...{ next_run: null, last_run: null, last_result: null, created_at: '2026-01-01T00:00:00.000Z' },
  }
  const add = (group: string, count: number) =>
    store.transaction(transaction => {
      for (let i = 0; i < count; i++) transaction.insertTask({ ...about, id: transaction.newTaskId(), group })
    })
  const read: string[] = []
  const brief = createBriefTasks(
    {
      countOpenTasks: store.countOpenTasks,
      briefTasks(folder, limit) {
        read.push(`${folder} ${limit}`)
        return store.briefTasks(folder, limit)
      },
    },
    20,
  )
  const seen = () =>
    Object.entries(Object.groupBy(brief.exceptOf('main'), ({ group }) => group)).map(([group, tasks]) => [
      group,
      tasks?.length,
    ])
  await add('main', 3)
  await add('greedy', 12)
  await add('calm', 2)
  expect(seen()).toEqual([
    ['calm', 2],
    ['greedy', 12],
  ])
  expect(read.splice(0)).toEqual(['calm 2', 'greedy 12'])
  await add('calm', 1)
  brief.changed('calm')
  expect(seen()).toEqual([
    ['calm', 3],
    ['greedy', 12],
  ])
  expect(read.splice(0)).toEqual(['calm 3'])
  // Where there are more than may be shown, each group has the same share.
  await add('greedy', 50)
  brief.changed('greedy')
  expect(seen()).toEqual([
    ['calm', 3],
    ['greedy', 10],
  ])
  expect(read.splice(0)).toEqual(['greedy 10'])
})

test('a large file counts as the many small ones it could have been', async () => {
  const live = await open({ limits: { commandsPerMinute: 100 } })
  const { layout, host } = live
  // 800 KiB are 201 commands: the next one of this group waits for a minute, and nobody else does.
  expect(await ask(live, 'greedy', 'send_message', { text: 'x'.repeat(819_200) })).toMatchObject({ ok: true })
  const payload = { text: 'hello' }
  post(
    join(layout.ipc, 'greedy', 'tasks'),
    JSON.stringify({ version: 1, id: 'later', type: 'send_message', payload }),
  )
  expect(await ask(live, 'calm', 'send_message', payload)).toMatchObject({ ok: true })
  expect(host.status().handled).toBe(2)
})
