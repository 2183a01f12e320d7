import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DialectName, Group, Task } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLayout, layoutOf } from '../base/layout.ts'
import { createRetries } from '../base/retry.ts'
import { openStore } from '../store/sqlite.ts'
import { groupOf as group } from '../store/testing.ts'
import { createSnapshots } from './snapshots.ts'

const patient = { timeout: 20_000 }

const task = (id: string, folder: string): Task => ({
  id,
  group: folder,
  jid: `${folder}@chat`,
  created_by: folder,
  prompt: 'p',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '60000',
  timezone: 'UTC',
  context_mode: 'group',
  status: 'active',
  next_run: '2099-01-01T00:00:00.000Z',
  last_run: null,
  last_result: null,
  created_at: '2026-01-01T00:00:00.000Z',
})

/** Groups with a task each; `main` is the main one. */
function open(...groups: readonly Group[]) {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-snapshots-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const layout = layoutOf(join(folder, 'data'))
  createLayout(layout)
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  const store = openStore({ path: layout.database, durability: 'process', prepare: false })
  onTestFinished(() => store.close())
  store.transaction(transaction => {
    for (const each of groups) {
      transaction.insertGroup(each)
      transaction.insertTask(task(`of-${each.folder}`, each.folder))
    }
  })
  for (const each of groups) mkdirSync(join(layout.ipc, each.folder))
  const log: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => void log.push(line) })
  const retries = createRetries({ log: logger, now: Date.now })
  onTestFinished(() => retries.stop())
  const clock = { now: '2026-02-02T00:00:00.000Z' }
  const snapshots = createSnapshots({
    layout,
    store,
    log: logger,
    retries,
    fault: () => {},
    now: () => new Date(clock.now),
  })
  onTestFinished(() => snapshots.stop())
  const path = (of: string, name = 'current_tasks.json') => join(layout.ipc, of, name)
  const writeAll = () => {
    for (const { folder } of groups) snapshots.changed({ kind: 'group_added', folder })
    snapshots.changed({ kind: 'groups_changed' })
    snapshots.flush()
  }
  return { layout, elsewhere, store, log, clock, snapshots, path, writeAll }
}
const idsIn = (path: string): string[] =>
  JSON.parse(readFileSync(path, 'utf8')).map(({ id }: { id: string }) => id)

test('everyone finds their own tasks, main everyone’s; both files can be read by the container', () => {
  const { path, writeAll, layout } = open(group('main', { main: true }), group('a'), group('b'))
  writeAll()
  expect(idsIn(path('a'))).toEqual(['of-a'])
  expect(idsIn(path('b'))).toEqual(['of-b'])
  expect(idsIn(path('main'))).toEqual(['of-main', 'of-a', 'of-b'])
  for (const folder of ['main', 'a', 'b']) {
    for (const name of ['current_tasks.json', 'available_groups.json']) {
      expect(lstatSync(path(folder, name)).mode & 0o777).toBe(0o644)
    }
  }
  expect(readdirSync(layout.staging)).toEqual([])
})

test('a link in a snapshot’s place is replaced, and what it points to is left alone', () => {
  const { elsewhere, path, writeAll } = open(group('a'))
  const target = join(elsewhere, 'precious')
  writeFileSync(target, 'precious')
  symlinkSync(target, path('a'))
  symlinkSync(join(elsewhere, 'new'), path('a', 'available_groups.json'))
  writeAll()
  for (const name of ['current_tasks.json', 'available_groups.json']) {
    expect(lstatSync(path('a', name)).isFile()).toBe(true)
  }
  expect(idsIn(path('a'))).toEqual(['of-a'])
  expect(readFileSync(target, 'utf8')).toBe('precious')
  expect(readdirSync(elsewhere)).toEqual(['precious'])
})

test('a link to a file that says the same is replaced all the same', () => {
  const { elsewhere, path, writeAll } = open(group('a'))
  writeAll()
  const content = readFileSync(path('a'), 'utf8')
  writeFileSync(join(elsewhere, 'copy'), content)
  rmSync(path('a'))
  symlinkSync(join(elsewhere, 'copy'), path('a'))
  writeAll()
  expect(lstatSync(path('a')).isFile()).toBe(true)
})

test('a FIFO in a snapshot’s place holds nobody up', () => {
  const { path, writeAll } = open(group('a'))
  execFileSync('mkfifo', [path('a')])
  writeAll()
  expect(lstatSync(path('a')).isFile()).toBe(true)
})

test('a directory in a snapshot’s place is reported, and the others are written', () => {
  const { log, path, writeAll, layout } = open(group('main', { main: true }), group('a'), group('b'))
  mkdirSync(path('a'))
  writeFileSync(join(path('a'), 'inside'), '')
  writeAll()
  expect(log).toHaveLength(1)
  expect(JSON.parse(log[0] ?? '')).toMatchObject({ group: 'a', file: 'current_tasks.json' })
  expect(readdirSync(path('a'))).toEqual(['inside'])
  expect(idsIn(path('b'))).toEqual(['of-b'])
  expect(idsIn(path('main'))).toHaveLength(3)
  expect(lstatSync(path('a', 'available_groups.json')).isFile()).toBe(true)
  expect(readdirSync(layout.staging)).toEqual([])
})

test('a group’s directory that is a link, or gone, is reported and nothing is written there', () => {
  const { elsewhere, layout, log, path, writeAll } = open(group('a'), group('b'), group('c'))
  for (const folder of ['a', 'b']) rmSync(join(layout.ipc, folder), { recursive: true })
  symlinkSync(elsewhere, join(layout.ipc, 'a'))
  writeAll()
  expect(readdirSync(elsewhere)).toEqual([])
  expect(new Set(log.map(line => JSON.parse(line).group))).toEqual(new Set(['a', 'b']))
  expect(idsIn(path('c'))).toEqual(['of-c'])
})

test('what is written already is not written again', () => {
  const { path, writeAll } = open(group('a'))
  writeAll()
  const before = lstatSync(path('a')).ino
  writeAll()
  expect(lstatSync(path('a')).ino).toBe(before)
  writeFileSync(path('a'), '[]')
  writeAll()
  expect(idsIn(path('a'))).toEqual(['of-a'])
})

test('whoever sees no groups keeps the same list of none, whenever the groups change', () => {
  const { clock, path, writeAll } = open(group('main', { main: true }), group('a'))
  const list = 'available_groups.json'
  const inodes = () => ['main', 'a'].map(of => lstatSync(path(of, list)).ino)
  writeAll()
  const [main, a] = inodes()
  clock.now = '2026-03-03T00:00:00.000Z'
  writeAll()
  const [mainAfter, aAfter] = inodes()
  expect(mainAfter).not.toBe(main)
  expect(aAfter).toBe(a)
  expect(JSON.parse(readFileSync(path('main', list), 'utf8'))).toMatchObject({ synced_at: clock.now })
})

test('a group whose dialect has no list of groups does not keep the one of whoever had its folder before', () => {
  const dialect: DialectName = 'mdclaw'
  const { path, writeAll, snapshots } = open(group('a', { dialect }))
  writeFileSync(path('a', 'available_groups.json'), '[{"folder":"main"}]')
  writeAll()
  expect(lstatSync(path('a', 'available_groups.json'), { throwIfNoEntry: false })).toBeUndefined()
  snapshots.changed({ kind: 'group_added', folder: 'a' })
  snapshots.flush()
  expect(idsIn(path('a'))).toEqual(['of-a'])
})

test('at the start every group’s are looked at, and mended where somebody changed them', async () => {
  const groups = Array.from({ length: 70 }, (_, i) => group(`g${i}`))
  const { path, snapshots } = open(...groups)
  snapshots.everything(true)
  await vi.waitFor(() => {
    for (const { folder } of groups) expect(idsIn(path(folder))).toEqual([`of-${folder}`])
  }, patient)
})

test('who waits for the snapshots is told once they are written, in order', async () => {
  const { path, snapshots } = open(group('a'))
  const told: string[] = []
  snapshots.changed({ kind: 'tasks_changed', folder: 'a' })
  snapshots.whenWritten(() => told.push(`first ${idsIn(path('a'))}`))
  snapshots.whenWritten(() => told.push('second'))
  // More is coming, and nothing was written for a while: written at once.
  snapshots.settle(true)
  expect(told).toEqual(['first of-a', 'second'])

  // More is coming, and something has just been written: a moment later.
  snapshots.changed({ kind: 'tasks_changed', folder: 'a' })
  snapshots.whenWritten(() => told.push('third'))
  snapshots.settle(true)
  expect(told).toHaveLength(2)
  await vi.waitFor(() => expect(told).toEqual(['first of-a', 'second', 'third']), patient)
})
