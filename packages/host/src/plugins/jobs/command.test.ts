import { expect, test } from 'vitest'
import { codeOf, openTestbed } from '../../commands/testing.ts'

test('a job is known by its name while it is open', async () => {
  using testbed = openTestbed({ jobs: { settle: job => job } })
  await testbed.add({ folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'hatchway' })
  const schedule = { schedule_type: 'interval', schedule_value: '60000' }
  const add = async (name: string) =>
    codeOf(await testbed.ask('main', 'schedule_host_job', { name, command: 'true', ...schedule }))
  await testbed.ask('main', 'schedule_task', { prompt: 'backup', ...schedule })
  expect(await add('backup')).toBe('done')
  expect(await add('BACKUP')).toBe('done')
  expect(await add('backup')).toBe('conflict')
  const job = testbed.store.tasks({}).find(task => task.job?.name === 'backup')
  await testbed.ask('main', 'pause_task', { task_id: job?.id })
  expect(await add('backup')).toBe('conflict')
  await testbed.ask('main', 'cancel_task', { task_id: job?.id })
  expect(await add('backup')).toBe('done')
})
