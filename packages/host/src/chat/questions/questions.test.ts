import type { Payload } from '@hatchway/protocol'
import { describe, expect, test } from 'vitest'
import { until } from '../../../../testing/src/until.ts'
import type { ConfigInput } from '../../config.ts'
import { groupOf, openChats } from '../channels/testing.ts'
import type { Choice } from '../channels/types.ts'
import { readHistory } from '../history.ts'

const groups = [
  groupOf('main', { main: true }),
  groupOf('family'),
  groupOf('shop', { requires_trigger: false }),
]

const colour = { question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] }
const size = { question: 'Which size?', options: [{ label: 'Small' }, { label: 'Large' }] }

/** Chats in which agents ask and people choose. */
async function open(options: { config?: ConfigInput; questionMs?: number; directory?: string } = {}) {
  const host = await openChats({ groups, ...options })
  const { store, chats, requestQueue, jidOf } = host
  requestQueue.resume()
  chats.questions.mend()
  const command = async (
    folder: string,
    id: string,
    type: 'ask_user' | 'cancel_request',
    payload: unknown,
  ) => {
    const { seq, outcome } = await host.command(folder, id, { type, payload })
    if (outcome && !outcome.ok) throw new Error(outcome.error.code)
    return seq
  }
  const choose = (
    folder: string,
    seq: number,
    answer: Choice['answer'],
    { question = 1, senderName = 'Ann' } = {},
  ) =>
    chats.inbound.choose('test', {
      jid: jidOf(folder),
      id: String(seq),
      question,
      answer,
      sender: senderName.toLowerCase(),
      senderName,
    })
  return {
    ...host,
    choose,
    ask: (folder: string, questions: Payload<'ask_user'>['questions'], id = 'r-1') =>
      command(folder, id, 'ask_user', { questions }),
    cancel: (folder: string, id = 'r-1') => command(folder, `c-${id}`, 'cancel_request', { request_id: id }),
    sent: (id = 'r-1') => host.sent(id),
    card: (seq: number) => store.questions.question(seq),
    heard: () => store.agents.incoming({}).map(({ text, status }) => [text, status]),
  }
}

const answered = (...answers: object[]) => [{ ok: true, result: { answers } }]

describe('what is said in the chat', () => {
  test('answers by number, label or own words, once, and calls nobody', async () => {
    const host = await open()
    const seq = await host.ask('main', [colour, size, { question: 'Why?' }])
    expect(host.say('main', '2')).toEqual({ ok: true, id: 1, status: 'used' })
    expect(host.card(seq)).toMatchObject({
      status: 'open',
      answers: [{ answer: 'Blue', option: 2, by: 'Ann' }, null, null],
    })
    expect(host.say('main', 'small', { senderName: 'Bob' })).toMatchObject({ status: 'used' })
    expect(host.say('main', 'because')).toMatchObject({ status: 'used' })
    await until('it is answered', () => host.sent().length > 0)
    expect(host.sent()).toEqual(
      answered(
        { question: 'Which colour?', answer: 'Blue', option: 2, by: 'Ann' },
        { question: 'Which size?', answer: 'Small', option: 1, by: 'Bob' },
        { question: 'Why?', answer: 'because', by: 'Ann' },
      ),
    )
    expect(host.card(seq)).toMatchObject({ status: 'answered', closedAt: expect.any(Number) })
    expect(host.kicks()).toBe(0)
    expect(host.store.agents.groupsWaiting()).toEqual([])
    // With nothing open, a number is a message like any other.
    expect(host.say('main', '2')).toMatchObject({ status: 'waiting' })
    expect(host.heard()).toEqual([
      ['2', 'used'],
      ['small', 'used'],
      ['because', 'used'],
      ['2', 'waiting'],
    ])
  })

  test('where the agent has to be called, own words must call it, and an option need not', async () => {
    const host = await open()
    const seq = await host.ask('family', [colour, { question: 'Why?' }])
    expect(host.say('family', 'I had lunch')).toMatchObject({ status: 'context' })
    expect(host.say('family', 'blue')).toMatchObject({ status: 'used' })
    expect(host.say('family', '2')).toMatchObject({ status: 'context' })
    expect(host.say('family', '@Hatch')).toMatchObject({ status: 'waiting' })
    expect(host.say('family', '@hatch, because of that')).toMatchObject({ status: 'used' })
    expect(host.card(seq)?.answers).toEqual([
      { answer: 'Blue', option: 2, by: 'Ann' },
      { answer: 'because of that', option: null, by: 'Ann' },
    ])
    expect(host.kicks()).toBe(1)
    await host.ask('family', [colour], 'r-2')
    expect(host.say('family', '@hatch 1')).toMatchObject({ status: 'used' })
    await host.ask('family', [colour], 'r-3')
    expect(host.say('family', 'red @hatch')).toMatchObject({ status: 'used' })
    await until('both are answered', () => host.sent('r-3').length > 0)
    expect([...host.sent('r-2'), ...host.sent('r-3')]).toMatchObject([
      { result: { answers: [{ option: 1 }] } },
      { result: { answers: [{ option: 1 }] } },
    ])
  })

  test('answers the oldest question of this chat, and no other chat’s', async () => {
    const host = await open()
    const first = await host.ask('shop', [colour], 'r-1')
    const second = await host.ask('shop', [size], 'r-2')
    const other = await host.ask('main', [colour], 'r-3')
    expect(host.say('shop', '1')).toMatchObject({ status: 'used' })
    expect(host.say('shop', 'large')).toMatchObject({ status: 'used' })
    expect(host.say('shop', '1')).toMatchObject({ status: 'waiting' })
    await until('both are answered', () => host.sent('r-2').length > 0)
    expect(host.card(first)?.answers).toMatchObject([{ answer: 'Red' }])
    expect(host.card(second)?.answers).toMatchObject([{ answer: 'Large' }])
    expect(host.card(other)).toMatchObject({ status: 'open', answers: [null] })
  })

  test('a message that is delivered twice answers once', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour, size])
    expect(host.say('shop', '1', { externalId: 'x' })).toMatchObject({ id: 1, status: 'used' })
    expect(host.say('shop', '1', { externalId: 'x' })).toMatchObject({ id: undefined })
    expect(host.card(seq)?.answers).toMatchObject([{ option: 1 }, null])
    expect(host.heard()).toHaveLength(1)
    expect(host.kicks()).toBe(0)
  })

  test('whoever may not write may not answer', async () => {
    const host = await open({ config: { groups: { Family: { senders: ['ann'] } } } })
    const seq = await host.ask('family', [colour])
    expect(host.say('family', '1', { sender: 'eve' })).toMatchObject({
      ok: false,
      error: { code: 'forbidden' },
    })
    expect(host.choose('family', seq, { option: 1 }, { senderName: 'Eve' })).toMatchObject({
      ok: false,
      error: { code: 'forbidden' },
    })
    expect(host.card(seq)).toMatchObject({ status: 'open', answers: [null] })
    expect(host.say('family', '1')).toMatchObject({ status: 'used' })
  })
})

describe('what is chosen in the card', () => {
  test('counts once: whoever comes second is told who was faster', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour, size])
    expect(host.choose('shop', seq, { option: 2 }, { question: 2 })).toMatchObject({
      ok: true,
      question: { status: 'open', answers: [null, { answer: 'Large', option: 2, by: 'Ann' }] },
    })
    expect(host.choose('shop', seq, { option: 1 }, { question: 2, senderName: 'Bob' })).toEqual({
      ok: false,
      error: { code: 'wrong_state', message: 'Ann has answered this already: Large' },
    })
    expect(host.choose('shop', seq, { text: ' my own ' }, { senderName: 'Bob' })).toMatchObject({
      ok: true,
      question: { status: 'answered' },
    })
    expect(host.choose('shop', seq, { text: 'late' })).toMatchObject({
      error: { code: 'wrong_state', message: 'Bob has answered this already: my own' },
    })
    await until('it is answered', () => host.sent().length > 0)
    expect(host.sent()).toEqual(
      answered(
        { question: 'Which colour?', answer: 'my own', by: 'Bob' },
        { question: 'Which size?', answer: 'Large', option: 2, by: 'Ann' },
      ),
    )
    expect(host.heard()).toEqual([])
  })

  test('is refused where it makes no sense, and nothing changes', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour])
    const codeOf = (chosen: ReturnType<typeof host.choose>) => (chosen.ok ? 'ok' : chosen.error.code)
    expect(codeOf(host.choose('shop', seq, { option: 3 }))).toBe('invalid_field')
    expect(codeOf(host.choose('shop', seq, { option: 0 }))).toBe('invalid_field')
    expect(codeOf(host.choose('shop', seq, { text: ' \n' }))).toBe('invalid_field')
    expect(codeOf(host.choose('shop', seq, { option: 1 }, { question: 2 }))).toBe('invalid_field')
    expect(codeOf(host.choose('shop', seq + 1, { option: 1 }))).toBe('not_found')
    expect(codeOf(host.choose('main', seq, { option: 1 }))).toBe('not_found')
    expect(codeOf(host.choose('nobody', seq, { option: 1 }))).toBe('not_found')
    expect(host.card(seq)).toMatchObject({ status: 'open', answers: [null] })
  })

  test('everybody who looks sees the card change', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour, size])
    const { messageId } = host.card(seq) ?? {}
    host.choose('shop', seq, { option: 1 })
    host.say('shop', '2')
    const cards = host.shown.filter(({ question }) => question)
    expect(cards.map(({ key }) => key)).toEqual([`out:${messageId}`, `out:${messageId}`])
    expect(cards.map(({ question }) => question?.status)).toEqual(['open', 'answered'])
    const { entries } = readHistory(host.store, { jid: 'chat:shop', folder: 'shop' }, 10)
    expect(entries.find(({ kind }) => kind === 'question')?.question).toEqual(cards[1]?.question)
  })
})

describe('a question that is over', () => {
  const isShown = async (host: Awaited<ReturnType<typeof open>>, status: string) => {
    await until(`the card is ${status}`, () => host.shown.some(({ question }) => question?.status === status))
  }

  test('because nobody answered in time, says so and takes nothing more', async () => {
    const host = await open({ questionMs: 30 })
    const seq = await host.ask('shop', [colour, size])
    host.choose('shop', seq, { option: 1 })
    await isShown(host, 'expired')
    expect(host.sent()).toMatchObject([{ ok: false, error: { code: 'expired' } }])
    expect(host.card(seq)).toMatchObject({ status: 'expired', answers: [{ answer: 'Red' }, null] })
    expect(host.choose('shop', seq, { option: 1 }, { question: 2 })).toMatchObject({
      error: { code: 'wrong_state', message: 'The question is over: nobody answered in time.' },
    })
    expect(host.say('shop', '1')).toMatchObject({ status: 'waiting' })
  })

  test('because it was taken back, or its container is gone, or its group', async () => {
    const host = await open()
    const taken = await host.ask('shop', [colour], 'r-1')
    await host.cancel('shop')
    await until('it is answered', () => host.sent().length > 0)
    expect(host.sent()).toMatchObject([{ error: { code: 'cancelled' } }])
    const gone = await host.ask('shop', [colour], 'r-2')
    host.requestQueue.containerGone('shop')
    await until('it is closed', () => host.card(gone)?.status !== 'open')
    const removed = await host.ask('shop', [colour], 'r-3')
    host.requestQueue.groupGone('shop')
    await until('it is closed', () => host.card(removed)?.status !== 'open')
    for (const seq of [taken, gone, removed]) {
      expect(host.card(seq)).toMatchObject({ status: 'withdrawn' })
      expect(host.choose('shop', seq, { option: 1 })).toMatchObject({ error: { code: 'wrong_state' } })
    }
    // Nobody would have read them.
    expect([...host.sent('r-2'), ...host.sent('r-3')]).toEqual([])
    expect(host.say('shop', '1')).toMatchObject({ status: 'waiting' })
  })

  test('in the very moment of the answer: only one of the two counts, and nothing that was said is lost', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour])
    // The request queue has decided, and nothing of it is durable yet.
    host.requestQueue.containerGone('shop')
    expect(host.card(seq)?.status).toBe('open')
    expect(host.choose('shop', seq, { option: 1 })).toMatchObject({ error: { code: 'wrong_state' } })
    expect(host.say('shop', '1')).toMatchObject({ status: 'waiting' })
    await until('it is closed', () => host.card(seq)?.status !== 'open')
    expect(host.card(seq)).toMatchObject({ status: 'withdrawn', answers: [null] })
  })

  test('the other way round: what was answered stays answered', async () => {
    const host = await open()
    const seq = await host.ask('shop', [colour])
    expect(host.say('shop', '1')).toMatchObject({ status: 'used' })
    host.requestQueue.groupGone('family')
    host.requestQueue.containerGone('shop')
    await host.requestQueue.stop()
    expect(host.store.questions.outcome(seq)).toMatchObject({ ok: true })
    expect(host.card(seq)).toMatchObject({ status: 'answered' })
  })
})

describe('after a crash', () => {
  test('a question that was open can still be answered', async () => {
    const before = await open()
    const seq = await before.ask('shop', [colour, size])
    before.say('shop', '1')
    before.kill()
    const host = await open({ directory: before.directory })
    expect(host.say('shop', '2')).toMatchObject({ status: 'used' })
    await until('it is answered', () => host.sent().length > 0)
    expect(host.sent()).toMatchObject([{ ok: true, result: { answers: [{ option: 1 }, { option: 2 }] } }])
    expect(host.card(seq)?.status).toBe('answered')
  })

  test('answers that were kept, and not given to the tool yet, are', async () => {
    const before = await open()
    const seq = await before.ask('shop', [colour])
    before.say('shop', '1')
    // Nothing has run since: the request itself is still open in the store.
    expect(before.store.questions.outcome(seq)).toBeNull()
    before.kill()
    const host = await open({ directory: before.directory })
    await until('it is answered', () => host.sent().length > 0)
    expect(host.sent()).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Red', by: 'Ann' }] } }])
    expect(host.say('shop', '1')).toMatchObject({ status: 'waiting' })
  })

  test.each([
    ['expired', { ok: false, error: { code: 'expired', message: 'x' } }, 'expired'],
    ['cancelled', { ok: false, error: { code: 'cancelled', message: 'x' } }, 'withdrawn'],
    [
      'answered',
      { ok: true, result: { answers: [{ question: 'Which colour?', answer: 'Red', option: 1, by: 'Ann' }] } },
      'answered',
    ],
  ] as const)('a card whose request is %s is closed', async (_, outcome, status) => {
    const before = await open()
    const seq = await before.ask('shop', [colour])
    before.store.requests.answer([{ seq, outcome }], Date.now())
    before.kill()
    const host = await open({ directory: before.directory })
    expect(host.card(seq)).toMatchObject({ status })
    if (outcome.ok) expect(host.card(seq)?.answers).toEqual([{ answer: 'Red', option: 1, by: 'Ann' }])
    await until('it is placed', () => host.sent().length > 0)
    expect(host.sent()).toEqual([outcome])
    // Also when nothing is known of the request any more.
    expect(host.store.questions.open()).toEqual([])
  })

  test('what a group that was removed meanwhile had asked is taken back', async () => {
    const before = await open()
    const seq = await before.ask('shop', [colour])
    before.store.transaction(transaction => transaction.deleteGroup('shop'))
    before.kill()
    const host = await open({ directory: before.directory })
    await until('it is closed', () => host.card(seq)?.status === 'withdrawn')
    expect(host.sent()).toEqual([])
  })
})
