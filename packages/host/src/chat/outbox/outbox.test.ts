import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../../testing/src/until.ts'
import { openStore } from '../../store/sqlite.ts'
import type { MessageRow, NewMessage, Settled, Store } from '../../store/types.ts'
import { createPace } from '../channels/pace.ts'
import type { Channel, Part } from '../channels/types.ts'
import { createOutbox, type Outbox } from './outbox.ts'

interface Sent extends Part {
  id: number
  jid: string
  text: string
}

/** A channel that writes down what it is given, and does as it is told about it. */
function channelOf(
  options: Partial<Channel> & { before?: (message: MessageRow, part: Part) => unknown } = {},
): Channel & { sent: Sent[] } {
  const sent: Sent[] = []
  const { before, ...more } = options
  return {
    name: 'test',
    messageLimit: Number.POSITIVE_INFINITY,
    reaches: () => true,
    ...more,
    sent,
    async send(message, part) {
      await before?.(message, part)
      sent.push({ id: message.id, jid: message.jid, text: message.text, ...part })
    },
  }
}

async function open(channels: readonly Channel[], intakeIsBusy = () => false) {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-outbox-'))
  const path = join(directory, 'hatchway.db')
  let store: Store = openStore({ path, durability: 'process' })
  let clock = 1_000_000
  let nextId = 1
  const settled: Settled[] = []
  const begin = (): Outbox =>
    createOutbox({
      store,
      channelOf: jid => channels.find(channel => channel.reaches(jid)),
      log: pino({ level: 'silent' }),
      intakeIsBusy,
      now: () => clock,
      lookup: { message: id => store.messages({ after: id - 1, limit: 1 }).find(row => row.id === id) },
      settled: messages => settled.push(...messages),
    })
  let outbox = begin()
  onTestFinished(async () => {
    await outbox.stop()
    store.close()
    rmSync(directory, { recursive: true })
  })
  const say = async (jid: string, text: string, more: Partial<NewMessage> = {}) => {
    const id = nextId++
    store.transaction(transaction =>
      transaction.insertMessage({
        id,
        group: 'family',
        jid,
        author: 'agent',
        kind: 'text',
        text,
        sender: null,
        speech: null,
        messageId: null,
        createdAt: clock,
        ...more,
      }),
    )
    outbox.kick()
    return id
  }
  return {
    say,
    settled,
    row: (id: number) => store.messages({ after: id - 1, limit: 1 })[0],
    rows: () => store.messages({}),
    later: (ms: number) => {
      clock += ms
      outbox.kick()
    },
    /** another process on the same store, which remembers nothing */
    async restart() {
      await outbox.stop()
      store.close()
      store = openStore({ path, durability: 'process' })
      outbox = begin()
      outbox.kick()
    },
    stop: () => outbox.stop(),
  }
}

const hour = 3_600_000

test('what waits for the turn of its account when the host stops is delivered by the next', async () => {
  const pace = createPace({ now: Date.now })
  pace.hold(hour)
  const held = channelOf({ pace })
  const channels = [held]
  const { say, restart, row } = await open(channels)
  const id = await say('chat:1', 'kept')
  await until(() => pace.status().waiting === 1)
  const free = channelOf()
  channels[0] = free
  await restart()
  await until(() => row(id)?.status === 'sent')
  expect(free.sent).toMatchObject([{ text: 'kept' }])
  expect(held.sent).toEqual([])
})

test('what is said after a rest is not kept waiting, and what follows it is gathered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const channel = channelOf()
  // A file that is being handled is no reason to wait for long: it may be the message itself.
  const { say } = await open([channel], () => true)
  const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms)
  await say('chat:1', 'first')
  await passes(1)
  expect(channel.sent).toHaveLength(1)
  await say('chat:1', 'second')
  await say('chat:2', 'third')
  await passes(50)
  expect(channel.sent).toHaveLength(1)
  await passes(50)
  expect(channel.sent).toHaveLength(3)
})

const isAt = (status: MessageRow['status']) => (row: MessageRow | undefined) => row?.status === status

test('files go along with the last part, and alone where there is nothing to say', async () => {
  const sent: MessageRow[] = []
  const { say, rows } = await open([
    { name: 'short', messageLimit: 10, reaches: () => true, send: async message => void sent.push(message) },
  ])
  const attachments = [{ id: 'a', name: 'a.txt', type: 'text/plain', bytes: 1 }]
  await say('chat:1', 'some words that are long', { attachments })
  await say('chat:1', '<internal>nothing to say</internal>', { attachments })
  await until('all are sent', () => rows().every(isAt('sent')))
  const parts = sent.map(({ text, attachments = [] }) => ({ text, files: attachments.length }))
  expect(parts.length).toBeGreaterThan(3)
  expect(parts.map(({ files }) => files)).toEqual([...parts.slice(2).map(() => 0), 1, 1])
  expect(parts.at(-1)?.text).toBe('')
})

test('an answer takes the place of the message that showed the agent at work, however soon it follows', async () => {
  const sent: string[] = []
  const edited: string[] = []
  const { say, rows } = await open([
    {
      ...{ name: 'editable', messageLimit: 1000, reaches: () => true },
      async send({ id, text }) {
        sent.push(text)
        return `platform-${id}`
      },
      edit: async ({ id }, { text }) => void edited.push(`${id}: ${text}`),
    },
  ])
  const progress = await say('chat:1', 'Working…', { kind: 'progress' })
  await say('chat:1', 'Working: search…', { kind: 'edit', messageId: String(progress) })
  await say('chat:1', 'tomorrow at nine', { replaces: progress })
  await until('all are sent', () => rows().every(isAt('sent')))
  expect(sent).toEqual(['Working…'])
  expect(edited).toEqual([`platform-${progress}: Working: search…`, `platform-${progress}: tomorrow at nine`])
})

test('messages are delivered in their order and settled', async () => {
  const channel = channelOf()
  const { say, rows, settled } = await open([channel])
  for (let i = 0; i < 500; i++) await say(`chat:${i % 7}`, `${i}`)
  await until('all are sent', () => rows().every(isAt('sent')))
  for (let chat = 0; chat < 7; chat++) {
    const ids = channel.sent.filter(({ jid }) => jid === `chat:${chat}`).map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted((a, b) => a - b))
  }
  expect(channel.sent).toHaveLength(500)
  expect(settled.map(({ message }) => message.id).toSorted((a, b) => a - b)).toEqual(
    rows().map(({ id }) => id),
  )
})

test('a message that has to be tried again holds back its own chat, and no other', async () => {
  let broken = true
  const channel = channelOf({
    before: ({ text }) => {
      if (broken && text === 'first') throw new Error('not now')
    },
  })
  const { say, row, later } = await open([channel])
  const first = await say('a', 'first')
  const second = await say('a', 'second')
  const other = await say('b', 'other')
  await until('the other chat has its message', () => row(other)?.status === 'sent')
  await until('the first was tried', () => row(first)?.error === 'not now')
  // What comes while the chat is blocked waits too, behind the others.
  const third = await say('a', 'third')
  const more = await say('b', 'more')
  await until('the other chat goes on', () => row(more)?.status === 'sent')
  expect([first, second, third].map(id => row(id)?.status)).toEqual(['pending', 'pending', 'pending'])
  expect(row(first)?.attempts).toBe(1)

  broken = false
  later(2000)
  await until('the chat has caught up', () => row(third)?.status === 'sent')
  expect(channel.sent.filter(({ jid }) => jid === 'a').map(({ text }) => text)).toEqual([
    'first',
    'second',
    'third',
  ])
})

test('the order of a chat outlives the process', async () => {
  let broken = true
  const channel = channelOf({
    before: ({ jid }) => {
      if (broken && jid === 'a') throw new Error('not now')
    },
  })
  const { say, row, later, restart } = await open([channel])
  const ids = [await say('a', '1'), await say('a', '2'), await say('a', '3')]
  const other = await say('b', 'other')
  await until('the other is sent', () => row(other)?.status === 'sent')
  await until('the first was tried', () => row(ids[0] ?? 0)?.error === 'not now')
  await restart()
  const last = await say('a', '4')
  const another = await say('b', 'another')
  await until('another is sent', () => row(another)?.status === 'sent')
  expect(row(last)?.status).toBe('pending')
  broken = false
  later(2 * hour)
  await until('all are sent', () => row(last)?.status === 'sent')
  expect(channel.sent.filter(({ jid }) => jid === 'a').map(({ text }) => text)).toEqual(['1', '2', '3', '4'])
})

test('a chat whose channel does not answer delays nobody else’s', async () => {
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  const slow = channelOf({ name: 'slow', reaches: jid => jid.startsWith('slow'), before: () => held })
  const fast = channelOf()
  const { say, row, rows } = await open([slow, fast])
  const stuck: number[] = []
  for (let i = 0; i < 40; i++) for (let j = 0; j < 10; j++) stuck.push(await say(`slow:${i}`, `${j}`))
  const quick = await say('fast', 'hello')
  await until('the other channel goes on', () => row(quick)?.status === 'sent')
  await until('those that wait are noted', () => stuck.every(id => row(id)?.attempts === 1))
  const quicker = await say('fast', 'again')
  await until('and on', () => row(quicker)?.status === 'sent')
  expect(stuck.every(id => row(id)?.status === 'pending')).toBe(true)
  release()
  await until('all are sent', () => rows().every(isAt('sent')))
  expect(slow.sent).toHaveLength(400)
  for (let i = 0; i < 40; i++) {
    const texts = slow.sent.filter(({ jid }) => jid === `slow:${i}`).map(({ text }) => text)
    expect(texts).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
  }
})

test('after its last attempt a message has failed, with the reason, and its chat goes on', async () => {
  const channel = channelOf({
    before: ({ text }) => {
      if (text === 'bad') throw new Error('no such chat')
    },
  })
  const { say, row, later, settled } = await open([channel])
  const bad = await say('a', 'bad')
  const next = await say('a', 'good')
  for (let attempts = 1; attempts < 12; attempts++) {
    await until(
      `attempt ${attempts} is over`,
      () => (row(bad)?.attempts ?? 0) >= attempts && row(bad)?.error !== null,
    )
    expect(row(bad)).toMatchObject({ status: 'pending', attempts })
    later(hour)
  }
  await until('it has failed', () => row(bad)?.status === 'failed')
  expect(row(bad)).toMatchObject({ attempts: 12, error: 'no such chat', sentAt: null })
  await until('the next is sent', () => row(next)?.status === 'sent')
  expect(settled.at(-2)?.change).toMatchObject({ id: bad, status: 'failed', error: 'no such chat' })
})

test('a chat that no channel reaches is tried again, and says why', async () => {
  const { say, row } = await open([channelOf({ reaches: () => false })])
  const id = await say('nowhere', 'hello')
  await until('it was tried', () => row(id)?.error === 'no channel reaches this chat')
  expect(row(id)?.status).toBe('pending')
})

test('what is internal is not delivered, and a message that is nothing else counts as sent', async () => {
  const channel = channelOf()
  const { say, rows } = await open([channel])
  await say('a', 'Hello <internal>he seems sad</internal>')
  await say('a', '<internal>nothing to say</internal>')
  await say('a', 'unfinished <internal>thought')
  await until('all are sent', () => rows().every(isAt('sent')))
  expect(channel.sent.map(({ text }) => text)).toEqual(['Hello', 'unfinished'])
})

test('the sender is put before the text, unless the channel has its own way', async () => {
  const plain = channelOf({ reaches: jid => jid === 'plain' })
  const own = channelOf({ showsSender: true })
  const { say, rows } = await open([plain, own])
  await say('plain', 'hello', { sender: 'Ann*\nBob' })
  await say('own', 'hello', { sender: 'Ann' })
  await say('plain', '👍', { sender: 'Ann', kind: 'reaction' })
  // Code begins a line, or it is none.
  await say('plain', '```\ncode\n```', { sender: 'Ann' })
  await until('all are sent', () => rows().every(isAt('sent')))
  expect(plain.sent.map(({ text }) => text)).toEqual(['*Ann Bob*: hello', '👍', '*Ann*:\n```\ncode\n```'])
  expect(own.sent.map(({ text }) => text)).toEqual(['hello'])
})

test('a long message goes out in parts, and goes on with the one that failed, after a restart too', async () => {
  let broken = true
  const channel = channelOf({
    messageLimit: 10,
    before: (_, { number }) => {
      if (broken && number === 3) throw new Error('the line is down')
    },
  })
  const { say, row, later, restart } = await open([channel])
  const id = await say('a', 'one two\nthree four\nfive six\nseven')
  await until('it was tried', () => row(id)?.error !== null)
  expect(row(id)).toMatchObject({
    status: 'pending',
    partsSent: 2,
    partsTotal: 4,
    error: '2 of 4 parts were delivered; then: the line is down',
  })
  later(2000)
  await until('it was tried again', () => row(id)?.attempts === 2)
  await restart()
  broken = false
  later(hour)
  await until('it is sent', () => row(id)?.status === 'sent')
  expect(channel.sent.map(({ text, number, of }) => [text, number, of])).toEqual([
    ['one two', 1, 4],
    ['three four', 2, 4],
    ['five six', 3, 4],
    ['seven', 4, 4],
  ])
})

test('fences are put around each part of long code, and nothing is added to what somebody has to decide about', async () => {
  const channel = channelOf({ messageLimit: 20 })
  const { say, rows } = await open([channel])
  const code = '```\none one\ntwo two\n```'
  await say('code', code)
  await say('card', code, { kind: 'approval' })
  await until('all are sent', () => rows().every(isAt('sent')))
  const textsIn = (chat: string) => channel.sent.filter(({ jid }) => jid === chat).map(({ text }) => text)
  expect(textsIn('code')).toEqual(['```\none one\n```', '```\ntwo two\n```'])
  expect(textsIn('card')).toEqual(['```\none one\ntwo two', '```'])
})

test('what a chat keeps waiting for hours is not in the way of new messages', async () => {
  const channel = channelOf({
    before: ({ jid }) => {
      if (jid === 'dead') throw new Error('gone')
    },
  })
  const { say, row, later } = await open([channel])
  const dead: number[] = []
  for (let i = 0; i < 600; i++) dead.push(await say('dead', `${i}`))
  await until('all are noted', () => dead.every(id => row(id)?.attempts === 1))
  for (let i = 0; i < 3; i++) {
    later(2 * hour)
    const id = await say('alive', `${i}`)
    await until('the new one is sent', () => row(id)?.status === 'sent')
  }
  expect(dead.every(id => row(id)?.status === 'pending')).toBe(true)
})
