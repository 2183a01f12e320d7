import {
  existsSync,
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
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLayout, layoutOf } from '../base/layout.ts'
import { createLogger } from '../base/logger.ts'
import { createContexts } from '../guard/contexts.ts'
import { wipedAt } from '../store/contexts.ts'
import { openStore } from '../store/sqlite.ts'
import { groupOf } from '../store/testing.ts'
import { createWiper, type WiperOptions } from './wipe.ts'

const seen = { corrupted: true, secret: true }

function open(more: Partial<WiperOptions> = {}) {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-wipe-'))
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  onTestFinished(() => {
    store.close()
    rmSync(data, { recursive: true })
  })
  for (const path of [
    join(layout.groups, 'work', '.home'),
    join(layout.worktrees, 'work'),
    join(layout.ipc, 'work', 'input'),
  ]) {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'notes'), 'do as the page says')
  }
  store.taints.add('work', 'session', seen, 'mail', 1)
  store.agents.setSession('work', 'session-1')
  const options: WiperOptions = {
    layout,
    store,
    endSession: async () => true,
    isBusy: () => false,
    writesElsewhere: () => false,
    renew: () => {},
    log: createLogger({ logLevel: 'silent' }),
    fault: () => {},
    now: () => 1,
    ...more,
  }
  const places = [layout.groups, layout.worktrees, layout.ipc]
  const left = () => places.flatMap(path => readdirSync(path)).filter(name => name !== 'errors')
  return { data, layout, store, left, options, wiper: createWiper(options) }
}
const contextsOf = ({ store }: ReturnType<typeof open>) => store.taints.all().map(({ context }) => context)

test('a group that can write a directory of yours stays as it is: that directory is not wiped', async () => {
  const place = open({ writesElsewhere: () => true })
  expect(await place.wiper.wipe('work')).toMatchObject({ ok: true, result: { still_tainted: ['session'] } })
})

test('everything that its runs can write is removed, and the group is clean', async () => {
  const place = open()
  expect(await place.wiper.wipe('work')).toEqual({
    ok: true,
    result: { folder: 'work', removed: 3, still_tainted: [] },
  })
  expect(contextsOf(place)).toEqual([])
  expect(place.store.agents.session('work')).toBeUndefined()
  await vi.waitFor(() => expect(place.left()).toEqual([]))
  expect(place.store.audit.entry(1)).toMatchObject({ action: 'wipe_group', decidedBy: 'operator' })
})

test('what lies under its folder’s name in another case is wiped with it, as both have one taint', async () => {
  const ended: string[] = []
  const place = open({
    endSession: async folder => {
      ended.push(folder)
      return true
    },
  })
  const { layout, store, wiper } = place
  store.transaction(transaction => transaction.insertGroup(groupOf('Work')))
  mkdirSync(join(layout.groups, 'Work'))
  mkdirSync(join(layout.groups, 'Workshop'))
  expect(await wiper.wipe('WORK')).toMatchObject({
    result: { folder: 'Work', removed: 4, still_tainted: [] },
  })
  // The session is that of the group which is registered.
  expect(ended).toEqual(['Work'])
  expect(contextsOf(place)).toEqual([])
  await vi.waitFor(() => expect(place.left()).toEqual(['Workshop']))
})

test('text that lies elsewhere stays tainted, and is named', async () => {
  const place = open()
  const { store } = place
  for (const context of ['task:1', 'result:1', 'shelf:memory', 'name', 'carried']) {
    store.taints.add('work', context, seen, 'mail', 1)
  }
  const waiting = {
    group: 'work',
    jid: 'local:work',
    sender: 'host',
    senderName: 'Hatchway',
    externalId: null,
  }
  store.agents.receive({ ...waiting, channel: 'host', text: 'go on', status: 'waiting', createdAt: 1 })
  expect(await place.wiper.wipe('work')).toMatchObject({
    result: { still_tainted: ['carried', 'name', 'result:1', 'shelf:memory', 'task:1'] },
  })
  createContexts(store, { containsSecrets: () => false }).begins('work', { taskId: null, shares: [] })
  expect(contextsOf(place)).toContain('session')
})

test('what its next run would be told of earlier ones is forgotten', async () => {
  const { store, wiper } = open({ now: () => 1234 })
  store.transaction(transaction =>
    transaction.addRefusal({ seq: 1, group: 'work', type: 'x', code: 'denied', message: 'as the page says' }),
  )
  await wiper.wipe('work')
  expect(store.refusals.take('work', 10)).toEqual({ refusals: [], earlier: 0 })
  expect(store.meta(wipedAt('work'))).toBe('1234')
})

test('a crash between the files and the taint leaves it tainted; wiping again finishes the work', async () => {
  const place = open({
    fault: step => {
      if (step === 'wiped') throw new Error('killed')
    },
  })
  await expect(place.wiper.wipe('work')).rejects.toThrow('killed')
  expect(existsSync(join(place.layout.groups, 'work'))).toBe(false)
  expect(contextsOf(place)).toEqual(['session'])
  const next = createWiper({ ...place.options, fault: () => {} })
  next.tidy()
  await vi.waitFor(() => expect(place.left()).toEqual([]))
  expect(await next.wipe('work')).toMatchObject({ ok: true })
  expect(contextsOf(place)).toEqual([])
})

test.each<[string, Partial<WiperOptions>]>([
  ['while its agent is at work', { endSession: async () => false }],
  ['while the host works for it', { isBusy: () => true }],
])('nothing is touched %s', async (_, more) => {
  const place = open(more)
  expect(await place.wiper.wipe('work')).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
  expect(contextsOf(place)).toEqual(['session'])
  expect(existsSync(join(place.layout.groups, 'work', '.home', 'notes'))).toBe(true)
})

test('no run begins meanwhile, and a second wipe waits its turn', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const { wiper } = open({ endSession: () => promise })
  const wiping = wiper.wipe('work')
  expect(wiper.isWiping('work')).toBe(true)
  expect(await wiper.wipe('work')).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
  resolve(true)
  expect(await wiping).toMatchObject({ ok: true })
  expect(wiper.isWiping('work')).toBe(false)
})

test('a folder that nobody has or had is not found', async () => {
  expect(await open().wiper.wipe('nobody')).toMatchObject({ ok: false, error: { code: 'not_found' } })
})

test('a link in the folder, or in its place, leads to nothing being removed', async () => {
  const { data, layout, left, wiper } = open()
  const outside = join(data, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'precious'), 'x')
  symlinkSync(outside, join(layout.groups, 'work', 'link'))
  rmSync(join(layout.worktrees, 'work'), { recursive: true })
  symlinkSync(outside, join(layout.worktrees, 'work'))
  expect(await wiper.wipe('work')).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(left()).toEqual([]))
  expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('x')
})
