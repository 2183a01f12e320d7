import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../testing/src/folders.ts'
import { createLayout, layoutOf } from '../../base/layout.ts'
import { configSchema } from '../../config.ts'
import { createPositions } from '../../store/positions.ts'
import { openStore } from '../../store/sqlite.ts'
import { groupOf } from '../../store/testing.ts'
import { createAttachments } from './attachments.ts'

const week = 7 * 86_400_000

/** A group's folder with room for 2,500 bytes, and a clock. */
function open() {
  const data = temporaryFolder('leave')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  onTestFinished(() => store.close())
  for (const folder of ['family', 'work'])
    store.transaction(transaction => transaction.insertGroup(groupOf(folder)))
  const folderOf = (group: string) => join(layout.groups, group)
  for (const group of ['family', 'work']) mkdirSync(folderOf(group), { recursive: true })
  const clock = { now: 1_000_000 }
  const attachments = createAttachments({
    config: configSchema.parse({ keep: { fileBytes: 2500 } }),
    layout,
    store,
    owners: () => undefined,
    positions: createPositions(store),
    placeOf: folderOf,
    apply: () => {},
    fault: () => {},
    now: () => clock.now,
    log: pino({ level: 'silent' }),
  })
  onTestFinished(() => attachments.stop())
  const sweep = () => {
    attachments.start()
    attachments.stop()
  }
  const count = (group: string) => readdirSync(join(folderOf(group), 'attachments')).length
  return { attachments, store, clock, sweep, folderOf, count }
}

const kilobyte = Buffer.alloc(1000, 'x')

test('files left for an agent count, and the oldest go when more are left', async () => {
  const { attachments, store, clock, count } = open()
  const paths: string[] = []
  for (let i = 0; i < 4; i++) {
    clock.now++
    paths.push(await attachments.leave('family', 'answer.json', kilobyte))
  }
  await attachments.leave('work', 'answer.json', kilobyte)
  expect(paths.map(path => existsSync(path))).toEqual([false, false, true, true])
  expect([store.files.total('family'), store.files.total('work')]).toEqual([2000, 1000])
  expect(count('work')).toBe(1)
  await expect(attachments.leave('family', 'large', Buffer.alloc(2501))).rejects.toMatchObject({
    code: 'quota_exceeded',
  })
})

test('a file left for an agent goes after a week, whatever has become of its place', async () => {
  const { attachments, store, clock, sweep, count } = open()
  const odd = await attachments.leave('family', 'a.txt', kilobyte)
  const plain = await attachments.leave('family', 'b.txt', kilobyte)
  clock.now += week
  sweep()
  expect(count('family')).toBe(2)
  // What its agent has put there instead is none of ours.
  rmSync(odd)
  mkdirSync(odd)
  clock.now++
  sweep()
  expect([existsSync(odd), existsSync(plain), store.files.total('family')]).toEqual([true, false, 0])
})

test('what could not be written does not count', async () => {
  const { attachments, store, folderOf } = open()
  rmSync(folderOf('family'), { recursive: true })
  await expect(attachments.leave('family', 'a.txt', kilobyte)).rejects.toMatchObject({ code: 'wrong_state' })
  expect(store.files.total('family')).toBe(0)
  await expect(attachments.leave('nobody', 'a.txt', kilobyte)).rejects.toMatchObject({ code: 'not_found' })
})
