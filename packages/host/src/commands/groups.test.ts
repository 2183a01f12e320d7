import { describe, expect, test } from 'vitest'
import type { NewGroup } from './groups.ts'
import { codeOf, openTestbed } from './testing.ts'

const main: NewGroup = { folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'nanoclaw' }
const family = { folder: 'family', jid: 'family@chat', name: 'Family' }

const openMain = async () => {
  const testbed = openTestbed()
  await testbed.add(main)
  return testbed
}

describe('register_group', () => {
  test('gives the new group no privilege, and the dialect of the group that asked', async () => {
    using testbed = await openMain()
    const { outcome, effects } = await testbed.ask('main', 'register_group', family)
    expect(outcome).toEqual({ ok: true, result: { folder: 'family', jid: 'family@chat' } })
    expect(effects).toEqual([{ kind: 'group_added', folder: 'family' }, { kind: 'groups_changed' }])
    expect(testbed.group('family')).toEqual({
      ...family,
      main: false,
      dialect: 'nanoclaw',
      trigger: null,
      requires_trigger: true,
      channel: null,
      added_at: '2026-01-15T12:00:00.000Z',
      last_activity: null,
    })
  })

  test('takes a trigger, and a channel', async () => {
    using testbed = await openMain()
    const extras = { trigger: '@Andy', requires_trigger: false, channel: 'telegram' }
    await testbed.ask('main', 'register_group', { ...family, ...extras })
    expect(testbed.group('family')).toMatchObject(extras)
  })

  test('by an operator speaks Hatchway’s own dialect', async () => {
    using testbed = await openMain()
    await testbed.ask('operator', 'register_group', family)
    expect(testbed.group('family')).toMatchObject({ dialect: 'hatchway', main: false })
  })

  test('by a group is never main, and begins with the usual dialect', async () => {
    using testbed = await openMain()
    await testbed.ask('main', 'register_group', family)
    expect(testbed.group('family')).toMatchObject({ main: false, dialect: 'nanoclaw' })
  })

  test.each([
    { folder: 'other', jid: 'main@chat' },
    { folder: 'main', jid: 'other@chat' },
    { folder: 'MAIN', jid: 'other@chat' },
    { folder: 'main', jid: 'main@chat' },
  ])('%j takes nothing over', async clash => {
    using testbed = await openMain()
    const before = testbed.store.groups()
    const answer = await testbed.ask('main', 'register_group', { name: 'Clash', ...clash })
    expect(codeOf(answer)).toBe('conflict')
    expect(answer.effects).toEqual([])
    expect(testbed.store.groups()).toEqual(before)
  })

  test('mounts are refused, and the group with them', async () => {
    using testbed = await openMain()
    const answer = await testbed.ask('main', 'register_group', { ...family, mounts_requested: true })
    expect(codeOf(answer)).toBe('forbidden')
    expect(testbed.group('family')).toBeUndefined()
  })
})

describe('addGroup', () => {
  test('may make a main group, which needs no trigger, in any dialect', async () => {
    using testbed = openTestbed()
    const { outcome, effects } = await testbed.add(main)
    expect(outcome).toEqual({ ok: true, result: { folder: 'main', jid: 'main@chat' } })
    expect(effects).toEqual([{ kind: 'group_added', folder: 'main' }, { kind: 'groups_changed' }])
    expect(testbed.group('main')).toMatchObject({ main: true, dialect: 'nanoclaw', requires_trigger: false })
  })

  test('takes over what is given', async () => {
    using testbed = openTestbed()
    await testbed.add({ ...main, trigger: '!', requires_trigger: true, channel: 'telegram' })
    expect(testbed.group('main')).toMatchObject({ trigger: '!', requires_trigger: true, channel: 'telegram' })
    await testbed.add({ ...main, ...family, trigger: null, channel: null })
    expect(testbed.group('family')).toMatchObject({ trigger: null, channel: null })
  })

  test.each([
    ['folder', { folder: '../..' }],
    ['folder', { folder: '' }],
    ['folder', { folder: 'errors' }],
    ['folder', { folder: 'Global' }],
    ['folder', { folder: '.hidden' }],
    ['folder', { folder: 'a'.repeat(65) }],
    ['folder', { folder: 'main\n' }],
    ['jid', { jid: '__proto__' }],
    ['jid', { jid: 'two words' }],
    ['jid', { jid: '' }],
    ['name', { name: '' }],
    ['trigger', { trigger: '' }],
  ])('checks the %s as strictly as for an agent: %j', async (field, change) => {
    using testbed = openTestbed()
    const { outcome } = await testbed.add({ ...main, ...change })
    expect(outcome.ok ? 'done' : `${outcome.error.code} ${outcome.error.message}`).toContain(
      `invalid_field ${field}: `,
    )
    expect(testbed.store.groups()).toEqual([])
  })

  test('takes nothing over either', async () => {
    using testbed = await openMain()
    expect(codeOf(await testbed.add({ ...main, jid: 'other@chat' }))).toBe('conflict')
    expect(codeOf(await testbed.add({ ...main, folder: 'other' }))).toBe('conflict')
  })
})

describe('unregister_group', () => {
  const openFamily = async () => {
    const testbed = await openMain()
    await testbed.add({ ...main, ...family, main: false })
    const task = { prompt: 'look', schedule_type: 'interval', schedule_value: '60000' }
    await testbed.ask('family', 'schedule_task', { ...task, task_id: 'open' })
    await testbed.ask('family', 'schedule_task', { ...task, task_id: 'paused' })
    await testbed.ask('family', 'pause_task', { task_id: 'paused' })
    await testbed.ask('main', 'schedule_task', { ...task, task_id: 'elsewhere' })
    return testbed
  }

  test('cancels what the group had open, and nothing else', async () => {
    using testbed = await openFamily()
    const { outcome, effects } = await testbed.ask('main', 'unregister_group', { jid: 'family@chat' })
    expect(outcome).toEqual({
      ok: true,
      result: { folder: 'family', jid: 'family@chat', tasks_cancelled: 2 },
    })
    expect(effects).toEqual([
      { kind: 'group_removed', folder: 'family' },
      { kind: 'tasks_changed', folder: 'family' },
      { kind: 'groups_changed' },
    ])
    expect(testbed.group('family')).toBeUndefined()
    expect(testbed.store.tasks({}).map(({ id, status, next_run }) => [id, status, next_run])).toEqual([
      ['open', 'cancelled', null],
      ['paused', 'cancelled', null],
      ['elsewhere', 'active', '2026-01-15T12:01:00.000Z'],
    ])
  })

  test('a main group is removed by an operator only', async () => {
    using testbed = await openFamily()
    expect(codeOf(await testbed.ask('main', 'unregister_group', { jid: 'main@chat' }))).toBe('forbidden')
    expect(testbed.group('main')).toBeDefined()
    expect(codeOf(await testbed.ask('operator', 'unregister_group', { jid: 'main@chat' }))).toBe('done')
    expect(testbed.group('main')).toBeUndefined()
  })

  test('a chat without a group is not found, and a group is not removed twice', async () => {
    using testbed = await openFamily()
    expect(codeOf(await testbed.ask('main', 'unregister_group', { jid: 'nobody@chat' }))).toBe('not_found')
    expect(codeOf(await testbed.ask('main', 'unregister_group', { jid: 'family@chat' }))).toBe('done')
    expect(codeOf(await testbed.ask('main', 'unregister_group', { jid: 'family@chat' }))).toBe('not_found')
  })

  test('folder and chat are free again, and the old tasks stay cancelled', async () => {
    using testbed = await openFamily()
    await testbed.ask('main', 'unregister_group', { jid: 'family@chat' })
    expect(codeOf(await testbed.ask('main', 'register_group', family))).toBe('done')
    expect(codeOf(await testbed.ask('family', 'resume_task', { task_id: 'open' }))).toBe('wrong_state')
  })
})

test('refresh_groups tells how many there are and has the snapshots written', async () => {
  using testbed = await openMain()
  const { outcome, effects } = await testbed.ask('main', 'refresh_groups', {})
  expect(outcome).toEqual({ ok: true, result: { groups: 1 } })
  expect(effects).toEqual([{ kind: 'groups_changed' }])
})

test('a service that is not there is named in the answer', async () => {
  using testbed = await openMain()
  const { outcome } = await testbed.ask('main', 'call_service', { tool: 'list_calendars', arguments: {} })
  expect(outcome).toEqual({
    ok: false,
    error: { code: 'unavailable', message: 'There is no service named list_calendars on this host.' },
  })
})
