import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../store/sqlite.ts'
import { groupOf } from '../store/testing.ts'
import type { Store } from '../store/types.ts'
import { readHistory } from './history.ts'

const chat = { jid: 'a@chat', folder: 'a' }
const long = 'x'.repeat(700_000)

function open(): Store {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-history-'))
  const store = openStore({ path: join(folder, 'hatchway.db'), durability: 'process', prepare: false })
  onTestFinished(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  store.transaction(transaction => {
    for (const name of ['a', 'b']) transaction.insertGroup(groupOf(name))
  })
  return store
}

/** What agents say, and what people say to them. */
const say = (store: Store, at: number, text: string, group = 'a') =>
  store.transaction(transaction =>
    transaction.insertMessage({
      ...{
        id: store.lastMessageId() + 1,
        group,
        jid: `${group}@chat`,
        author: 'agent',
        kind: 'text',
        text,
        createdAt: at,
      },
      ...{ sender: null, speech: null, messageId: null },
    }),
  )
const hear = (store: Store, at: number, text: string) =>
  store.agents.receive({
    ...{ group: 'a', jid: 'a@chat', channel: 'web', externalId: null, sender: 'u', senderName: 'Ada' },
    ...{ text, createdAt: at, status: 'used' },
  })

test('a chat is read in its order, both sides, without what others say elsewhere', () => {
  const store = open()
  for (let n = 0; n < 6; n += 2) {
    hear(store, n, `asked ${n}`)
    say(store, n + 1, `answered ${n}`)
    say(store, n + 1, 'elsewhere', 'b')
  }
  const { entries, more } = readHistory(store, chat, 4)
  expect(entries.map(({ text }) => text)).toEqual(['asked 2', 'answered 2', 'asked 4', 'answered 4'])
  expect(more).toBe(true)
  expect(readHistory(store, chat, 6)).toMatchObject({ more: false, entries: { length: 6 } })
})

test('of long messages fewer are read at once, the newest, and without gaps', () => {
  const store = open()
  for (let n = 0; n < 20; n += 2) {
    hear(store, n, `asked ${n}`)
    say(store, n + 1, `${n} ${long}`)
  }
  const { entries, more } = readHistory(store, chat, 200)
  expect(entries.map(({ text }) => text.slice(0, 8).trim())).toEqual([
    ...['14 xxxxx', 'asked 16', '16 xxxxx', 'asked 18', '18 xxxxx'],
  ])
  expect(more).toBe(true)
})

test('one that is longer than what is read at once is read all the same', () => {
  const store = open()
  say(store, 1, 'before')
  say(store, 2, 'x'.repeat(3_000_000))
  const { entries, more } = readHistory(store, chat, 200)
  expect(entries.map(({ text }) => text.length)).toEqual([3_000_000])
  expect(more).toBe(true)
})

test('pages of long messages are short, and leave none out', () => {
  const store = open()
  for (let n = 1; n <= 10; n++) say(store, n, `${n} ${long}`)
  const found: number[] = []
  for (let after = 0; ; after = found.at(-1) ?? 0) {
    const page = store.messages({ after, limit: 1000, characters: 2_000_000 })
    if (page.length === 0) break
    expect(page.length).toBeLessThanOrEqual(3)
    found.push(...page.map(({ id }) => id))
  }
  expect(found).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(store.dueMessages(100, 200, 2_000_000).map(({ id }) => id)).toEqual([1, 2, 3])
})
