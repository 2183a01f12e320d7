import { expect, test } from 'vitest'
import type { NewIncoming } from '../store/types.ts'
import { codeOf, openTestbed } from './testing.ts'

const openFamily = async () => {
  const testbed = openTestbed()
  await testbed.add({ folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'hatchway' })
  await testbed.add({
    folder: 'family',
    jid: 'family@chat',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
  })
  return testbed
}

test('a message waits in the outbox, under the id that the sender is told', async () => {
  using testbed = await openFamily()
  const { outcome, effects } = await testbed.ask('family', 'send_message', {
    text: 'Dinner!',
    sender: 'Cook',
    speech: { text: 'Dinner is ready', title: 'Dinner' },
  })
  const [message] = testbed.store.messages({})
  expect(outcome).toEqual({ ok: true, result: { message_id: String(message?.id), status: 'queued' } })
  expect(effects).toEqual([{ kind: 'message_queued' }])
  expect(message).toMatchObject({
    group: 'family',
    jid: 'family@chat',
    kind: 'text',
    text: 'Dinner!',
    sender: 'Cook',
    speech: { text: 'Dinner is ready', title: 'Dinner' },
    messageId: null,
    status: 'pending',
    attempts: 0,
    createdAt: Date.parse('2026-01-15T12:00:00.000Z'),
  })
})

test('a reaction is a message that points at another', async () => {
  using testbed = await openFamily()
  await testbed.ask('family', 'react', { emoji: '🎉', message_id: 'ABC-1' })
  await testbed.ask('family', 'react', { emoji: '👍' })
  expect(testbed.store.messages({})).toMatchObject([
    { kind: 'reaction', text: '🎉', messageId: 'ABC-1', jid: 'family@chat', sender: null, speech: null },
    { kind: 'reaction', text: '👍', messageId: null },
  ])
})

test('a message quotes what people said to its group in its chat, and nothing else', async () => {
  using testbed = await openFamily()
  const hear = (group: string, jid: string, more: Partial<NewIncoming> = {}) =>
    String(
      testbed.store.agents.receive({
        ...{ group, jid, channel: 'test', externalId: `x-${group}`, sender: 'ann', senderName: 'Ann' },
        ...{ text: 'hello', status: 'context', createdAt: 1, thread: 'topic', ...more },
      }),
    ).padStart(12, '0')
  const own = hear('family', 'family@chat')
  const nameless = hear('family', 'family@chat', { externalId: null })
  const others = [
    hear('main', 'main@chat'),
    hear('family', 'before@chat'),
    hear('family', 'family@chat', { channel: 'host', externalId: 'note' }),
    '000000009999',
    'x-family',
    '1e3',
  ]
  for (const reply_to of others)
    expect(codeOf(await testbed.ask('family', 'send_message', { text: 'no', reply_to }))).toBe('not_found')
  const elsewhere = { text: 'no', jid: 'family@chat', reply_to: own }
  expect(codeOf(await testbed.ask('main', 'send_message', elsewhere))).toBe('not_found')
  expect(testbed.store.messages({})).toEqual([])
  await testbed.ask('family', 'send_message', { text: 'yes', reply_to: own })
  await testbed.ask('family', 'send_message', { text: 'well', reply_to: nameless })
  const [yes, well] = testbed.store.messages({})
  expect(yes).toMatchObject({ text: 'yes', replyTo: 'x-family', thread: 'topic', author: 'agent' })
  expect(well).toMatchObject({ text: 'well' })
  expect(well).not.toHaveProperty('replyTo')
})

test('main reaches any chat, registered or not, and remains the sender', async () => {
  using testbed = await openFamily()
  await testbed.ask('main', 'send_message', { jid: 'family@chat', text: 'hello' })
  await testbed.ask('main', 'send_message', { jid: 'stranger@chat', text: 'hello' })
  expect(testbed.store.messages({}).map(({ group, jid }) => [group, jid])).toEqual([
    ['main', 'family@chat'],
    ['main', 'stranger@chat'],
  ])
})

test('an operator speaks through the group whose chat it is', async () => {
  using testbed = await openFamily()
  await testbed.ask('operator', 'send_message', { jid: 'family@chat', text: 'hello' })
  expect(testbed.store.messages({}).map(({ group }) => group)).toEqual(['family'])
  expect(codeOf(await testbed.ask('operator', 'send_message', { jid: 'stranger@chat', text: 'hi' }))).toBe(
    'not_found',
  )
})

test('messages keep the order in which they were sent', async () => {
  using testbed = await openFamily()
  for (const text of ['one', 'two', 'three']) await testbed.ask('family', 'send_message', { text })
  expect(testbed.store.messages({}).map(({ text }) => text)).toEqual(['one', 'two', 'three'])
})
