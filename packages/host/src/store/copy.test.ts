import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { inspectStore } from './inspect.ts'
import { inspectAside, settleAside } from './inspect-aside.ts'
import { openStore } from './sqlite.ts'

function open() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-copy-'))
  const store = openStore({ path: join(folder, 'hatchway.db'), durability: 'process' })
  onTestFinished(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  return { folder, store }
}

/** Two rows that belong together: a copy with only one of them was torn. */
const writePair = (store: ReturnType<typeof open>['store'], id: number, text: string) =>
  store.transaction(transaction => {
    for (const [part, half] of ['a', 'b'].entries()) {
      transaction.insertMessage({
        id: id * 2 + part,
        group: half,
        jid: 'chat:1',
        author: 'agent',
        kind: 'text',
        text,
        sender: null,
        speech: null,
        messageId: null,
        createdAt: id,
      })
    }
  })

test('a copy that is made while thousands of changes go on is whole, and as it was at one moment', async () => {
  const { folder, store } = open()
  let id = 1
  const text = 'x'.repeat(4000)
  for (; id < 2000; id++) await writePair(store, id, text)
  for (let round = 0; round < 3; round++) {
    const path = join(folder, `copy-${round}.db`)
    let isCopied = false
    const before = id
    const copied = store.copyTo(path).then(() => {
      isCopied = true
    })
    while (!isCopied) {
      await writePair(store, id++, text)
      await breathe()
    }
    await copied
    await settleAside(path, { seq: 0, keepsSessions: true })
    expect(await inspectAside(path)).toMatchObject({ damage: [], audit: { ok: true } })
    const copy = openStore({ path, durability: 'process' })
    const there = copy.messages({})
    copy.close()
    const last = Math.max(...there.map(({ createdAt }) => createdAt))
    expect(last).toBeGreaterThanOrEqual(before - 1)
    expect(there).toHaveLength(last * 2)
  }
  // And the database itself is as it was: its log is written back again.
  for (let more = 0; more < 3000; more++) await writePair(store, id++, text)
  expect(store.messages({})).toHaveLength((id - 1) * 2)
})

test('what is no database, and one of a newer version, is told and not changed', async () => {
  const { folder, store } = open()
  await store.copyTo(join(folder, 'copy.db'))
  const { DatabaseSync } = await import('node:sqlite')
  const copy = new DatabaseSync(join(folder, 'copy.db'))
  copy.exec('PRAGMA user_version = 99')
  copy.close()
  expect(await inspectStore(join(folder, 'copy.db'))).toMatchObject({ version: 99, damage: [], groups: [] })
  const { writeFileSync } = await import('node:fs')
  writeFileSync(
    join(folder, 'none.db'),
    'not a database at all, but long enough to be looked at. '.repeat(100),
  )
  expect((await inspectStore(join(folder, 'none.db'))).damage).toEqual(['file is not a database'])
})
