import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import type { ConfigInput } from '../config.ts'
import { hostMessage } from '../store/text-message.ts'
import { groupOf, openChats, saying } from './channels/testing.ts'
import { type Channel, type Delivered, DeliveryError, type Outgoing } from './channels/types.ts'
import { createOutbox } from './outbox/outbox.ts'

/** A chat on a platform whose messages can be changed, as people see it. */
async function open(
  more: Partial<Channel> & { progressMs?: number; isFixed?: boolean; config?: ConfigInput } = {},
) {
  const { progressMs = 1, isFixed = false, config = {}, ...own } = more
  const shown = new Map<string, string>()
  const files: string[] = []
  let last = 0
  const channel: Channel = {
    name: 'test',
    messageLimit: 40,
    reaches: jid => jid.startsWith('chat:'),
    async send({ text, attachments = [] }) {
      files.push(...attachments.map(({ name }) => name))
      if (text === '') return undefined
      shown.set(`p${++last}`, text)
      return `p${last}`
    },
    ...(!isFixed && {
      async edit({ id }: Delivered, { text }: Outgoing) {
        shown.set(id, text)
      },
    }),
    ...own,
  }
  const rig = await openChats({
    groups: [groupOf('main', { main: true })],
    channels: [channel],
    config: { ...config, agents: { progressMs, ...config.agents } },
    said: () => outbox.kick(),
  })
  const { store, chats, positions } = rig
  const outbox = createOutbox({
    store,
    channelOf: chats.channelOf,
    lookup: chats.lookup,
    log: pino({ level: 'silent' }),
    intakeIsBusy: () => false,
    now: Date.now,
    settled: chats.settled,
  })
  onTestFinished(async () => {
    chats.progress.stop()
    chats.liveTexts.stop()
    await outbox.stop()
  })
  const group = { folder: 'main', jid: 'chat:main' }
  const settled = () => until('all is delivered', () => store.countPending() === 0)
  return {
    ...{ store, chats, shown, files, group, settled },
    texts: () => [...shown.values()],
    /** the agent's answer, as a session stores it */
    async answer(text: string, attachments?: { id: string; name: string; type: string; bytes: number }[]) {
      const message = chats.progress.replacing({
        ...{ id: positions.next(), group: 'main', jid: 'chat:main', author: 'agent', kind: 'text', text },
        ...{ sender: null, speech: null, messageId: null, createdAt: Date.now() },
        ...(attachments && { attachments }),
      })
      store.transaction(transaction => transaction.insertMessage(message))
      outbox.kick()
      await settled()
    },
    /** somebody says something in a thread of the chat, and the agent is given it */
    async hears(thread: string) {
      const heard = await chats.inbound.receive('test', saying('chat:main', 'hello', { thread }))
      if (heard.ok && heard.id !== undefined) store.agents.give([heard.id], 'r1')
    },
    /** a change of what shows the agent at work, which is delivered later than it was made where it says of which thread */
    async change(text: string, thread?: string) {
      const open = store.openProgress('main')
      const edit = hostMessage(positions.next(), { folder: 'main', jid: open?.jid ?? '' }, text, Date.now())
      store.transaction(transaction =>
        transaction.insertMessage({
          ...{ ...edit, kind: 'edit', messageId: String(open?.id) },
          ...(thread !== undefined && { thread }),
        }),
      )
      outbox.kick()
      await settled()
    },
    /** the agent writes these words, and whoever looks at its chat sees them */
    async writes(words: string, jid = group.jid) {
      chats.liveTexts.grow({ ...group, jid }, words)
      await until('they are seen', () => chats.liveTexts.all().some(({ text }) => text === words))
    },
    async works(tool?: string) {
      chats.progress.working(group, tool)
      await until('it is shown', () => [...shown.values()].some(text => text.startsWith('Working')))
    },
  }
}

test('what an agent does is one message that changes, and then its answer', async () => {
  const { works, chats, group, texts, answer } = await open()
  await works('mcp__calendar__list_events')
  expect(texts()).toEqual(['Working: list events… (/stop ends it)'])
  chats.progress.working(group, 'Bash')
  await until('the next step is shown', () => texts()[0]?.includes('Bash') === true)
  await answer('tomorrow at nine')
  chats.progress.over('main', true)
  expect(texts()).toEqual(['tomorrow at nine'])
})

test('what an agent is writing grows in it, is not stored, and its answer takes the place', async () => {
  const { works, chats, group, store, texts, answer } = await open()
  await works('Bash')
  chats.liveTexts.grow(group, 'Tomorrow <internal>or never</inter')
  chats.liveTexts.grow(group, `nal>at nine${' or at ten'.repeat(10)}`)
  await until('it is shown', () => texts()[0]?.startsWith('Tomorrow at nine') === true)
  expect(texts()[0]?.length).toBeLessThanOrEqual(40)
  expect(JSON.stringify(store.messages({}))).not.toContain('Tomorrow')
  chats.liveTexts.over('main')
  await answer('Tomorrow at nine.')
  chats.progress.over('main', true)
  expect(texts()).toEqual(['Tomorrow at nine.'])
})

test('whoever answers it answers what it became, and not that the agent was at work', async () => {
  const { works, answer, chats, store } = await open()
  await works('Bash')
  await answer('tomorrow at nine')
  const quote = { id: 'p1', text: 'tomorrow at nine' }
  chats.inbound.receive('test', saying('chat:main', 'thanks', { quote }))
  expect(store.agents.incoming({})).toMatchObject([
    { quote: { senderName: 'you', text: 'tomorrow at nine' } },
  ])
})

test('a long answer begins in its place, and files follow', async () => {
  const { works, texts, files, answer } = await open()
  await works()
  const words = Array.from({ length: 12 }, (_, i) => `word${i}`).join(' ')
  await answer(words, [{ id: 'a', name: 'a.txt', type: 'text/plain', bytes: 1 }])
  expect(texts().join(' ')).toBe(words)
  expect(texts().length).toBeGreaterThan(1)
  expect(files).toEqual(['a.txt'])
})

test('an agent that says nothing is done; one that is tried again goes on in the same message', async () => {
  const { works, chats, group, texts, settled, answer } = await open()
  await works()
  chats.progress.over('main', false)
  await works('Read')
  await until('the next run is shown', () => texts()[0]?.includes('Read') === true)
  chats.progress.over('main', true)
  await settled()
  expect(texts()).toEqual(['Done.'])
  chats.progress.working(group)
  await until('the next turn is shown', () => texts().length === 2)
  await answer('hello')
  expect(texts()).toEqual(['Done.', 'hello'])
})

test('a message that somebody deleted does not cost the answer', async () => {
  const { works, texts, answer } = await open({
    edit: async () => {
      throw new DeliveryError('message to edit not found', { isFinal: true })
    },
  })
  await works()
  await answer('hello')
  expect(texts().at(-1)).toBe('hello')
})

test('what an agent is writing is not shown where nobody wants it, in one group or in all', async () => {
  const configs: ConfigInput[] = [{ agents: { liveText: 'no' } }, { groups: { MAIN: { liveText: 'no' } } }]
  const check = async (config: ConfigInput) => {
    const { works, chats, group, texts, answer } = await open({ config })
    chats.liveTexts.grow(group, 'Tomorrow')
    await works('Bash')
    chats.progress.working(group, 'Read')
    await until('the next step is shown', () => texts()[0]?.includes('Read') === true)
    expect(chats.liveTexts.all()).toEqual([])
    await answer('Tomorrow at nine.')
    expect(texts()).toEqual(['Tomorrow at nine.'])
  }
  await Promise.all(configs.map(check))
})

test('a change that fails does not hold back the answer', async () => {
  let fails = 0
  const shown: string[] = []
  const { works, chats, group, answer, settled } = await open({
    async edit(_, { text, kind }) {
      if (kind === 'edit' && ++fails) throw new Error('can’t parse entities')
      shown.push(text)
    },
  })
  await works()
  chats.liveTexts.grow(group, '**Tom')
  await until('a change is tried', () => fails > 0)
  await settled()
  await answer('Tomorrow.')
  expect(shown).toEqual(['Tomorrow.'])
  expect(fails).toBe(1)
})

test('nothing is shown where messages cannot change, or nobody wants it', async () => {
  const fixed = await open({ isFixed: true })
  const silent = await open({ progressMs: 0 })
  for (const { chats, group, answer, texts } of [fixed, silent]) {
    chats.progress.working(group, 'Bash')
    await answer('hello')
    expect(texts()).toEqual(['hello'])
  }
})

test('what an agent is writing is seen only in the thread that its answer goes to', async () => {
  const { hears, works, writes, change, answer, texts } = await open()
  await hears('one')
  await works('Bash')
  await writes('For one')
  await change('Working: Read')
  expect(texts()).toEqual(['For one …'])
  await hears('two')
  await change('Working: Read')
  expect(texts()).toEqual(['Working: Read'])
  // A change that waited since the first thread was answered.
  await change('Working: Write', 'one')
  expect(texts()).toEqual(['Working: Write'])
  await answer('Only for two')
  expect(texts()).toEqual(['Done.', 'Only for two'])
})

test('what an agent is writing is not seen in a chat that its group had before', async () => {
  const { works, writes, change, store, texts } = await open()
  await works('Bash')
  const group = store.group('main')
  if (!group) throw new Error('there is no group')
  store.transaction(transaction => transaction.updateGroup({ ...group, jid: 'chat:other' }))
  await writes('Only for the other', 'chat:other')
  await change('Working: Read')
  expect(texts()).toEqual(['Working: Read'])
})
