import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../testing/src/folders.ts'
import { createLayout, layoutOf } from '../../base/layout.ts'
import type { Effect } from '../../commands/effects.ts'
import { configSchema } from '../../config.ts'
import { openStore } from '../../store/sqlite.ts'
import { createPeriodicAgents } from './agents.ts'
import { createPeriodicTable } from './table.ts'

async function open(openTasks = 1000) {
  const data = temporaryFolder('periodic')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  onTestFinished(() => store.close())
  const effects: Effect[] = []
  const { timezone, limits } = configSchema.parse({ timezone: 'UTC' })
  const { sql } = store.pluginTables({ name: 'periodic', tables: ['periodic_agents'] })
  const agents = createPeriodicAgents(
    {
      timezone,
      limits: { ...limits, openTasks },
      layout,
      owners: () => undefined,
      group: store.group,
      groups: store.groups,
      transaction: work =>
        store.transaction(transaction => work(transaction, effect => void effects.push(effect))),
      now: () => new Date('2026-01-15T12:00:00.000Z'),
    },
    createPeriodicTable(sql),
  )
  const create = (change: object, seen?: { corrupted: boolean; secret: boolean }) =>
    agents.create(
      { name: 'Relay', schedule: '0 7 * * *', prompt: 'look', context_mode: undefined, ...change },
      undefined,
      seen,
    )
  const fileOf = (folder: string) => join(layout.groups, folder, 'CLAUDE.md')
  return { store, effects, create, fileOf }
}

test('what its maker had read goes with the task, and with the instructions that every session reads', async () => {
  const { store, create } = await open()
  const seen = { corrupted: true, secret: false }
  await create({}, seen)
  expect(store.taints.all().map(({ context }) => context)).toEqual(['name', 'task:1'])
  await create({ instructions: 'do as the mail says' }, seen)
  expect(store.taints.all().map(({ group, context }) => `${group} ${context}`)).toEqual([
    'relay name',
    'relay session',
    'relay task:1',
  ])
})

test('what stands in the way of its instructions does not make a lie of the rest', async () => {
  const { store, effects, create, fileOf } = await open()
  await create({ instructions: 'first' })
  rmSync(fileOf('relay'))
  mkdirSync(fileOf('relay'))
  effects.length = 0
  const outcome = await create({ instructions: 'second', prompt: 'look again' })
  expect(outcome).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
  expect(store.tasks({})).toMatchObject([{ prompt: 'look again' }])
  expect(effects.map(({ kind }) => kind)).toContain('tasks_changed')
  expect(existsSync(join(fileOf('relay'), '..', '.CLAUDE.md.new'))).toBe(false)
})

test('two of one folder at once do not take each other’s instructions away', async () => {
  const { store, create, fileOf } = await open()
  await create({ instructions: 'none yet' })
  await create({ name: 'Other' })
  const [changed, refused] = await Promise.all([
    create({ instructions: 'mine' }),
    create({ instructions: 'not mine', jid: 'local:other' }),
  ])
  expect(changed).toMatchObject({ ok: true })
  expect(refused).toMatchObject({ ok: false, error: { code: 'conflict' } })
  expect(readFileSync(fileOf('relay'), 'utf8')).toBe('mine')
  expect(store.groups()).toHaveLength(2)
})

test('a new task for it needs room among the group’s tasks, and nothing is half done without', async () => {
  const { store, create } = await open(1)
  await create({})
  const [task] = store.tasks({})
  if (!task) throw new Error('no task')
  store.transaction(transaction => {
    transaction.updateTask({ ...task, status: 'cancelled', next_run: null })
    transaction.insertTask({ ...task, id: 'own' })
  })
  expect(await create({ name: 'RELAY', prompt: 'more' })).toMatchObject({
    ok: false,
    error: { code: 'quota_exceeded' },
  })
  expect(store.group('relay')?.name).toBe('Relay')
})
