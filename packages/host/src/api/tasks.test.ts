import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { minute, openBench } from '../runs/scheduler/testing.ts'
import { occurrencesAnswer } from './answers.ts'
import { answerFailures } from './requests.ts'
import { mount } from './route.ts'
import { taskRoutes } from './tasks.ts'

async function openApi({ daemon = true } = {}) {
  const bench = openBench()
  onTestFinished(() => bench[Symbol.dispose]())
  await bench.addGroup('family')
  bench.scheduler.start()
  await bench.ask('family', 'schedule_task', {
    task_id: '7',
    prompt: 'stretch',
    schedule_type: 'interval',
    schedule_value: '60000',
    context_mode: 'isolated',
  })
  const app = new Hono()
  answerFailures(app, error => {
    throw error
  })
  mount(app, '', taskRoutes, {
    host: {
      store: bench.store,
      perform: async () => {
        throw new Error('nobody asked for that')
      },
      ...(daemon && { runTask: (id: string) => bench.scheduler.runNow(id) }),
    },
  })
  const ask = async (method: string, path: string) => {
    const response = await app.request(path, { method })
    return { status: response.status, body: await response.json() }
  }
  return { bench, ask }
}

test('a task’s history says when it was due and what came of it, the newest of it in order', async () => {
  const { bench, ask } = await openApi()
  expect((await ask('GET', '/tasks/7/history')).body).toEqual([])
  await bench.time.pass(3 * minute)
  await bench.time.pass(0)
  const history = occurrencesAnswer.parse((await ask('GET', '/tasks/7/history?limit=2')).body)
  expect(history).toMatchObject([
    { due_at: '2026-01-15T12:02:00.000Z', status: 'done', result: 'did stretch', manual: false },
    { due_at: '2026-01-15T12:03:00.000Z', status: 'done', run_id: 'run-3' },
  ])
})

test('a task can be run now', async () => {
  const { bench, ask } = await openApi()
  expect(await ask('POST', '/tasks/7/run')).toMatchObject({ status: 200, body: { task_id: '7' } })
  await bench.time.pass(0)
  await bench.time.pass(0)
  expect((await ask('GET', '/tasks/7/history')).body).toMatchObject([{ manual: true, status: 'done' }])
})

test('what cannot be done is refused with its code', async () => {
  const { ask } = await openApi()
  expect(await ask('GET', '/tasks/8/history')).toMatchObject({ body: { error: { code: 'not_found' } } })
  expect(await ask('POST', '/tasks/8/run')).toMatchObject({ body: { error: { code: 'not_found' } } })
  expect(await ask('GET', '/tasks/7/history?limit=0')).toMatchObject({
    body: { error: { code: 'invalid_field' } },
  })
  const { ask: askInside } = await openApi({ daemon: false })
  expect(await askInside('POST', '/tasks/7/run')).toMatchObject({ body: { error: { code: 'unavailable' } } })
})
