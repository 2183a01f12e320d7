import { expect, test } from 'vitest'
import { codeOf, openDesk } from '../../commands/testing.ts'

test('a job is known by its name while it is open', async () => {
  using desk = openDesk({ jobs: { settle: job => job } })
  await desk.add({ folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'hatchway' })
  const schedule = { schedule_type: 'interval', schedule_value: '60000' }
  const add = async (name: string) =>
    codeOf(await desk.ask('main', 'schedule_host_job', { name, command: 'true', ...schedule }))
  await desk.ask('main', 'schedule_task', { prompt: 'backup', ...schedule })
  expect(await add('backup')).toBe('done')
  expect(await add('BACKUP')).toBe('done')
  expect(await add('backup')).toBe('conflict')
  const job = desk.store.tasks({}).find(task => task.job?.name === 'backup')
  await desk.ask('main', 'pause_task', { task_id: job?.id })
  expect(await add('backup')).toBe('conflict')
  await desk.ask('main', 'cancel_task', { task_id: job?.id })
  expect(await add('backup')).toBe('done')
})
