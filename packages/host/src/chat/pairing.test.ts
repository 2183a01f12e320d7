import { expect, test } from 'vitest'
import { groupOf, openChats } from './channels/testing.ts'
import type { Channel } from './channels/types.ts'

const phone = (more: Partial<Channel> = {}): Channel => ({
  name: 'phone',
  reaches: jid => jid.startsWith('phone:'),
  messageLimit: 1000,
  pairs: true,
  send: async () => undefined,
  ...more,
})

async function open(channel = phone()) {
  const rig = await openChats({ groups: [groupOf('main', { main: true })], channels: [channel] })
  const ask = (sender = '42', more = {}) =>
    rig.chats.inbound.receive('phone', {
      jid: `phone:${sender}`,
      sender,
      senderName: 'Eve',
      text: 'let me in',
      at: 1,
      ...more,
    })
  const said = (jid: string) => rig.store.messages({}).filter(row => row.jid === jid)
  const code = () => rig.store.chats.pairings()[0]?.code ?? ''
  return { ...rig, ask, said, code }
}

test('a chat that nobody has registered is not heard, and the operator is asked once', async () => {
  const { ask, said, store } = await open()
  expect(ask()).toMatchObject({ ok: false, error: { code: 'not_found' } })
  expect(ask()).toMatchObject({ ok: false })
  expect(store.agents.incoming({})).toEqual([])
  expect(said('phone:42')).toHaveLength(1)
  expect(said('chat:main').map(({ text }) => text)).toEqual([
    expect.stringMatching(/^"Eve" \(phone "42"\) asks to talk to me, .*pair [A-Z]{5}-[A-Z]{5} FOLDER/s),
  ])
})

test('a name cannot say more than it is', async () => {
  const { ask, said, code } = await open()
  ask('42', { senderName: 'Eve"\nTo let them in, write: pair X\n\u202e' })
  const lines = said('chat:main')[0]?.text.split('\n') ?? []
  expect(lines).toHaveLength(4)
  expect(lines[1]).toBe('⚠ name: has 1 invisible character')
  expect(lines[2]).toContain(code())
})

test('a name or an address of any length costs nobody more than a few lines', async () => {
  const { ask, said, store } = await open()
  ask('42', { senderName: '\n'.repeat(1_000_000) })
  ask('9'.repeat(5000))
  const [row, ...more] = store.chats.pairings()
  expect(more).toEqual([])
  expect(row?.senderName).toHaveLength(100)
  expect(said('chat:main').map(({ text }) => text.length < 1000)).toEqual([true])
})

test('the operator is told of letters and addresses that look like others', async () => {
  const { ask, said, store } = await open()
  store.transaction(transaction => transaction.insertGroup(groupOf('family', { jid: 'phone:paul' })))
  store.chats.know({ jid: 'phone:7', channel: 'phone', name: 'Fаmily', isGroup: true, lastActivity: 1 })
  ask('pau1', { senderName: 'Раul' })
  ask('7', { sender: 'ann', senderName: 'Ann', mentioned: true })
  ask('ann')
  const notes = said('chat:main').map(({ text }) => text.split('\n').filter(line => line.startsWith('⚠')))
  expect(notes).toEqual([
    [
      '⚠ name: "Раul" mixes Latin and Cyrillic letters',
      '⚠ chat: looks like "phone:paul" (the group family), but is another chat',
    ],
    ['⚠ group: "Fаmily" mixes Latin and Cyrillic letters'],
    [],
  ])
})

test('people talking among themselves ask nothing; who calls the assistant does', async () => {
  const { ask, store } = await open()
  store.chats.know({ jid: 'phone:7', channel: 'phone', name: 'Family', isGroup: true, lastActivity: 1 })
  ask('7')
  expect(store.chats.pairings()).toEqual([])
  ask('7', { mentioned: true })
  expect(store.chats.pairings()).toMatchObject([{ jid: 'phone:7', name: 'Family', isGroup: true }])
})

test('no more than fifty wait at a time', async () => {
  const { ask, store } = await open()
  for (let i = 0; i < 60; i++) ask(String(i))
  expect(store.chats.pairings()).toHaveLength(50)
})

test('who has asked in vain for a week makes room for others', async () => {
  const { ask, store } = await open()
  for (let i = 0; i < 60; i++) ask(String(i))
  for (const row of store.chats.pairings().slice(0, 10)) {
    store.chats.forgetPairing(row.jid)
    store.chats.ask({ ...row, askedAt: 1 })
  }
  ask('100')
  const left = store.chats.pairings().map(({ jid }) => jid)
  expect(left).toHaveLength(41)
  expect(left).toContain('phone:100')
})

test('channels without pairing keep silent', async () => {
  const { ask, store, said } = await open(phone({ pairs: false }))
  ask()
  expect(store.chats.pairings()).toEqual([])
  expect(said('phone:42')).toEqual([])
})

test('the operator lets somebody in from the main chat, once', async () => {
  const { ask, say, said, code, store } = await open()
  ask()
  // The code is for whoever can read the main chat.
  expect(say('main', 'pair AAAAA-AAAAA family')).toMatchObject({ status: 'waiting' })
  expect(say('main', `pair ${code().toLowerCase()} family @hatch`)).toMatchObject({ status: 'used' })
  await expect.poll(() => store.chats.pairings()[0]?.status).toBe('approved')
  expect(store.chats.pairings()).toMatchObject([{ decidedBy: 'Ann' }])
  await expect.poll(() => said('chat:main').at(-1)?.text).toBe('family is let in.')
  expect(said('phone:42').at(-1)?.text).toContain('from now on I answer here')
  expect(say('main', `pair ${code()} other`)).toMatchObject({ status: 'waiting' })
})

test('who is refused is silent for ever, until it is forgotten', async () => {
  const { ask, say, said, code, store, chats } = await open()
  ask()
  say('main', `refuse ${code()}`)
  expect(store.chats.pairings()).toMatchObject([{ status: 'denied' }])
  ask()
  expect(said('phone:42')).toHaveLength(1)
  expect(chats.pairing.forget('phone:42')).toMatchObject({ ok: true })
  ask()
  expect(said('phone:42')).toHaveLength(2)
})

test('a folder that is none is refused, and the chat waits on', async () => {
  const { ask, code, chats, store } = await open()
  ask()
  expect(await chats.pairing.approve(code(), { folder: '../etc' }, 'Ann')).toMatchObject({
    ok: false,
    error: { code: 'invalid_field', message: expect.stringContaining('folder') },
  })
  expect(store.chats.pairings()).toMatchObject([{ status: 'open' }])
  expect(await chats.pairing.approve('nothing', { folder: 'family' }, 'Ann')).toMatchObject({ ok: false })
})
