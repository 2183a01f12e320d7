import { expect, test } from 'vitest'
import { openTestbed } from '../commands/testing.ts'
import { textKey, wipedAt } from '../store/contexts.ts'
import { createContexts } from './contexts.ts'

const guard = {
  containsSecrets: (folder: string) => folder === 'vault',
  isOffline: () => false,
  approvalMs: 1000,
}
const corrupted = { corrupted: true, secret: false }
const secret = { corrupted: false, secret: true }

const open = async () => {
  const testbed = openTestbed({ guard })
  const { store } = testbed
  for (const folder of ['main', 'work', 'vault']) {
    const main = folder === 'main'
    await testbed.add({ folder, jid: `local:${folder}`, name: folder, main, dialect: 'hatchway' })
  }
  const taintOf = (group: string) => {
    const row = store.taints.all().find(row => row.group === group && row.context === 'session')
    return { corrupted: row?.corruptedAt != null, secret: row?.secretAt != null }
  }
  return Object.assign(testbed, { contexts: createContexts(store, guard), taintOf })
}
const plain = { taskId: null, shares: [] }

test('an agent that reports no session id, another one, or none any more stays tainted', async () => {
  using testbed = await open()
  const { store, contexts } = testbed
  store.agents.setSession('work', 'session-1')
  store.taints.add('work', 'session', corrupted, 'mail', 1)
  store.agents.setSession('work', 'session-2')
  contexts.gone('work')
  expect(testbed.taintOf('work')).toEqual(corrupted)
  store.transaction(transaction => transaction.forgetSession('work'))
  contexts.gone('work')
  // The next process knows it too, and so does the next run.
  const next = createContexts(store, guard)
  next.begins('work', plain)
  next.gone('work')
  expect(testbed.taintOf('work')).toEqual(corrupted)
})

test('a group that is unregistered and registered again has the same files, and the same taint', async () => {
  using testbed = await open()
  testbed.store.taints.add('work', 'session', corrupted, 'mail', 1)
  testbed.store.taints.add('work', 'shelf:memory', secret, 'remember', 1)
  testbed.store.taints.add('work', 'name', corrupted, 'register_group', 1)
  await testbed.ask('operator', 'unregister_group', { jid: 'local:work' })
  await testbed.add({ folder: 'work', jid: 'local:other', name: 'Other', main: false, dialect: 'hatchway' })
  expect(testbed.store.taints.all()).toMatchObject([
    { group: 'work', context: 'session', corruptedBy: 'mail' },
    { group: 'work', context: 'shelf:memory', secretBy: 'remember' },
  ])
})

test('a folder has the same files in upper and lower case on some file systems, and the same taint on all', async () => {
  using testbed = await open()
  const { store, contexts } = testbed
  store.taints.add('work', 'session', corrupted, 'mail', 1)
  store.taints.add('work', 'name', corrupted, 'register_group', 1)
  await testbed.ask('operator', 'unregister_group', { jid: 'local:work' })
  await testbed.add({ folder: 'Work', jid: 'local:other', name: 'Other', main: false, dialect: 'hatchway' })
  expect(store.taints.of('Work', 'session')).toEqual(corrupted)
  store.taints.add('WORK', 'session', secret, 'diary', 2)
  expect(store.taints.all()).toMatchObject([
    { group: 'work', context: 'session', corruptedBy: 'mail', secretBy: 'diary' },
  ])
  contexts.share('Work', 'repo:x', ['main'])
  expect(testbed.taintOf('main')).toEqual({ corrupted: true, secret: true })
  store.taints.add('work', 'task:Mail', corrupted, 'mail', 1)
  expect(store.taints.texts(undefined).get(textKey('WORK', 'task:Mail'))).toEqual(corrupted)
  expect(store.taints.texts('WORK').get(textKey('work', 'task:Mail'))).toEqual(corrupted)
  // Ids of tasks are told apart by case.
  expect(store.taints.of('Work', 'task:mail')).toEqual({ corrupted: false, secret: false })
  expect(wipedAt('WORK')).toBe(wipedAt('work'))
  expect(store.taints.clear('WORK', 'session')).toBe(true)
  expect(store.taints.of('work', 'session')).toEqual({ corrupted: false, secret: false })
})

test('a run takes on what its task and its group’s name were written in, in whatever session it runs', async () => {
  using testbed = await open()
  const { store, contexts } = testbed
  store.taints.add('work', 'task:7', corrupted, 'schedule_task', 1)
  contexts.begins('work', { taskId: '8', shares: [] })
  expect(testbed.taintOf('work')).toEqual({ corrupted: false, secret: false })
  contexts.begins('work', { taskId: '7', shares: [] })
  expect(testbed.taintOf('work')).toEqual(corrupted)
  store.taints.add('main', 'name', secret, 'register_group', 1)
  contexts.begins('main', plain)
  expect(testbed.taintOf('main')).toEqual(secret)
})

test('what is merged into a repository taints those who have it, and those who get it later', async () => {
  using testbed = await open()
  const { store, contexts } = testbed
  store.taints.add('main', 'session', corrupted, 'mail', 1)
  contexts.share('main', 'repo:site', ['work'])
  expect(testbed.taintOf('work')).toEqual(corrupted)
  contexts.share('vault', 'repo:site', ['work', 'main'])
  expect(testbed.taintOf('main')).toEqual({ corrupted: true, secret: true })
  contexts.begins('later', { taskId: null, shares: ['repo:another'] })
  expect(testbed.taintOf('later')).toEqual({ corrupted: false, secret: false })
  contexts.begins('later', { taskId: null, shares: ['repo:site'] })
  expect(testbed.taintOf('later')).toEqual({ corrupted: true, secret: true })
})
