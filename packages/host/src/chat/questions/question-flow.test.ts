import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DialectName } from '@hatchway/protocol'
import { createNames, post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../testing/src/until.ts'
import { createApi } from '../../api/app.ts'
import { entriesAnswer, questionAnswer } from '../../api/chat-answers.ts'
import type { ConfigInput } from '../../config.ts'

/**
 * Questions of agents from file to file: asked in a group's directory, answered by people through the routes that the
 * browser and the terminal use, and answered in the group's directory.
 */
const groups: { folder: string; dialect: DialectName; main?: boolean }[] = [
  { folder: 'main', dialect: 'hatchway', main: true },
  { folder: 'family', dialect: 'pynchy' },
  { folder: 'closed', dialect: 'hatchway' },
]
const freshName = createNames()

const colour = {
  question: 'Which colour?',
  options: [{ label: 'Red', description: 'as blood' }, { label: 'Blue' }],
}

async function open(input: ConfigInput = {}) {
  const live = await openLive({ agents: { enabled: 'no' }, ...input })
  onTestFinished(() => live.close())
  for (const { folder, main = false, dialect } of groups) {
    await live.host.addGroup({ folder, jid: `web:${folder}`, name: folder, main, dialect })
  }
  const start = async () => {
    await live.start()
    await live.host.startAgents()
  }
  await start()
  const send = async (path: string, body?: unknown) => {
    const { host } = live
    if (!host.chats) throw new Error('there are no chats')
    const response = await createApi(host, { chat: { chats: host.chats } }).request(
      `/api${path}`,
      body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) },
    )
    const answer: unknown = await response.json()
    return { status: response.status, answer }
  }
  const drop = (folder: string, content: object) =>
    post(join(live.layout.ipc, folder, 'tasks'), JSON.stringify(content), { name: freshName() })
  const history = async (folder: string) =>
    entriesAnswer.parse((await send(`/chats/web:${folder}/messages`)).answer).entries
  /** the card, once people can see it */
  const card = async (folder: string) => {
    const find = async () => (await history(folder)).findLast(({ question }) => question)
    await until('the question is in the chat', async () => (await find())?.status === 'sent')
    const entry = await find()
    if (!entry?.question) throw new Error('there is no question')
    return { ...entry, question: entry.question }
  }
  const path = (folder: string, id: string) => join(live.layout.ipc, folder, 'responses', `${id}.json`)
  const isAnswered = (folder: string, id: string) =>
    lstatSync(path(folder, id), { throwIfNoEntry: false }) !== undefined
  return {
    live,
    card,
    history,
    isAnswered,
    async restart() {
      await live.reopen()
      await start()
    },
    /** as Pynchy's containers do */
    askFlat: (folder: string, id: string, questions: unknown) =>
      drop(folder, { type: 'ask_user:ask', request_id: id, questions }),
    ask: (folder: string, id: string, questions: unknown) =>
      drop(folder, { version: 1, id, type: 'ask_user', payload: { questions } }),
    command: (folder: string, id: string, type: string, payload: object) =>
      drop(folder, { version: 1, id, type, payload }),
    say: (folder: string, text: string) => send(`/chats/web:${folder}/messages`, { text }),
    choose: (folder: string, id: string, body: object) => send(`/chats/web:${folder}/questions/${id}`, body),
    async answer(folder: string, id: string): Promise<unknown> {
      await until('there is an answer', () => isAnswered(folder, id))
      return JSON.parse(readFileSync(path(folder, id), 'utf8'))
    },
  }
}

describe('a question that an agent asks', () => {
  test('in Pynchy’s words is answered with a number, in its shape', async () => {
    const host = await open()
    host.askFlat('family', 'r-1', [colour])
    const { text, kind, question } = await host.card('family')
    expect({ text, kind }).toEqual({
      kind: 'question',
      text: 'Which colour?\n1. Red: as blood\n2. Blue\n\nAnswer with a number or in your own words, calling the agent.',
    })
    expect(question).toMatchObject({ questions: [colour], answers: [null], status: 'open' })
    expect(await host.say('family', '2')).toMatchObject({ status: 201, answer: { status: 'used' } })
    expect(await host.answer('family', 'r-1')).toEqual({
      result: { answers: [{ question: 'Which colour?', answer: 'Blue', option: 2, by: 'Operator' }] },
    })
    expect((await host.history('family')).map(({ status, question }) => [status, question?.status])).toEqual([
      ['sent', 'answered'],
      ['used', undefined],
    ])
    await until('nothing is left of it', () => host.live.host.store.requests.unfinished().length === 0)
  })

  test('four at once, by clicks and words in any order, is one receipt; asked again, the same', async () => {
    const host = await open()
    const questions = [
      colour,
      { question: 'How many?' },
      { ...colour, question: 'And inside?' },
      { question: 'Why?' },
    ]
    host.ask('main', 'r-4', questions)
    const { question } = await host.card('main')
    expect(question.answers).toEqual([null, null, null, null])
    const chosen = await host.choose('main', question.id, { question: 3, option: 1 })
    expect(questionAnswer.parse(chosen.answer).answers).toMatchObject([null, null, { answer: 'Red' }, null])
    expect(await host.say('main', '2')).toMatchObject({ answer: { status: 'used' } })
    expect(await host.choose('main', question.id, { question: 4, text: 'because' })).toMatchObject({
      status: 200,
    })
    // The same file again is the same question.
    host.ask('main', 'r-4', questions)
    await until('it is handled', () => host.live.events.length === 2)
    expect(host.isAnswered('main', 'r-4')).toBe(false)
    expect(await host.say('main', 'seven')).toMatchObject({ answer: { status: 'used' } })
    const receipt = {
      version: 1,
      id: 'r-4',
      ok: true,
      result: {
        answers: [
          { question: 'Which colour?', answer: 'Blue', option: 2, by: 'Operator' },
          { question: 'How many?', answer: 'seven', by: 'Operator' },
          { question: 'And inside?', answer: 'Red', option: 1, by: 'Operator' },
          { question: 'Why?', answer: 'because', by: 'Operator' },
        ],
      },
    }
    expect(await host.answer('main', 'r-4')).toEqual(receipt)
    expect((await host.history('main')).filter(({ kind }) => kind === 'question')).toHaveLength(1)
    expect(host.live.host.store.agents.groupsWaiting()).toEqual([])
  })

  test('that nobody answers is an error, in both shapes, and its card says so', async () => {
    const host = await open({ services: { questionMs: 1000 } })
    host.askFlat('family', 'r-1', [colour])
    host.ask('main', 'r-1', [colour])
    const { question } = await host.card('main')
    expect(await host.answer('family', 'r-1')).toEqual({
      error: 'expired: Nobody answered within 1 seconds.',
    })
    expect(await host.answer('main', 'r-1')).toMatchObject({
      version: 1,
      ok: false,
      error: { code: 'expired' },
    })
    expect((await host.card('family')).question.status).toBe('expired')
    expect(await host.choose('main', question.id, { option: 1 })).toEqual({
      status: 409,
      answer: { error: { code: 'wrong_state', message: 'The question is over: nobody answered in time.' } },
    })
    expect(await host.say('main', '1')).toMatchObject({ answer: { status: 'waiting' } })
  })

  test('outlives a restart, with what was answered before it', async () => {
    const host = await open()
    host.ask('main', 'r-1', [colour, { question: 'Why?' }])
    const { question } = await host.card('main')
    await host.choose('main', question.id, { option: 1 })
    await host.restart()
    expect((await host.card('main')).question.answers).toMatchObject([{ answer: 'Red' }, null])
    expect(await host.say('main', 'because')).toMatchObject({ answer: { status: 'used' } })
    expect(await host.answer('main', 'r-1')).toMatchObject({
      ok: true,
      result: { answers: [{ answer: 'Red' }, { answer: 'because' }] },
    })
  })

  test('is taken back by whoever asked, or goes with its group', async () => {
    const host = await open()
    host.ask('closed', 'r-1', [colour])
    const { question } = await host.card('closed')
    host.command('closed', 'r-2', 'cancel_request', { request_id: 'r-1' })
    expect(await host.answer('closed', 'r-1')).toMatchObject({ ok: false, error: { code: 'cancelled' } })
    expect((await host.card('closed')).question.status).toBe('withdrawn')
    expect(await host.choose('closed', question.id, { option: 1 })).toMatchObject({
      status: 409,
      answer: { error: { message: 'The question is over: it is no longer needed.' } },
    })
    host.ask('closed', 'r-3', [colour])
    await until('it is asked', () => host.live.host.store.questions.open().length === 1)
    const again = await host.card('closed')
    expect(again.question.status).toBe('open')
    await host.live.host.removeGroup('closed')
    const { questions } = host.live.host.store
    await until('it is closed', () => questions.question(Number(again.question.id))?.status === 'withdrawn')
  })

  test('that is none is refused, and nobody sees it', async () => {
    const host = await open({ limits: { openRequests: 2 } })
    const options = Array.from({ length: 21 }, (_, i) => ({ label: `option ${i}` }))
    const bad = [
      [],
      Array(5).fill(colour),
      [{ question: '' }],
      [{ question: 'x', options }],
      [{ options: [] }],
      'why?',
    ]
    for (const [i, questions] of bad.entries()) host.ask('main', `bad-${i}`, questions)
    for (const i of bad.keys()) {
      expect(await host.answer('main', `bad-${i}`)).toMatchObject({
        ok: false,
        error: { code: 'invalid_field' },
      })
    }
    for (const i of [1, 2, 3]) host.ask('main', `many-${i}`, [colour])
    expect(await host.answer('main', 'many-3')).toMatchObject({
      ok: false,
      error: { code: 'quota_exceeded' },
    })
    // Without an id there is nowhere to answer to.
    post(
      join(host.live.layout.ipc, 'main', 'tasks'),
      '{"type":"ask_user:ask","questions":[{"question":"x"}]}',
      {
        name: freshName(),
      },
    )
    await until('it is refused', () => host.live.events.length === bad.length + 4)
    expect(host.live.events.at(-1)?.outcome).toMatchObject({ ok: false })
    await host.card('main')
    expect((await host.history('main')).filter(({ question }) => question)).toHaveLength(2)
    expect(readdirSync(join(host.live.layout.ipc, 'main', 'responses'))).toHaveLength(bad.length + 1)
  })
})

describe('whoever answers', () => {
  test('second is told who was faster, and what they said', async () => {
    const host = await open()
    host.ask('main', 'r-1', [colour])
    const { question } = await host.card('main')
    const both = await Promise.all([
      host.choose('main', question.id, { option: 1 }),
      host.choose('main', question.id, { text: 'green' }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const { answers } = questionAnswer.parse(both.find(({ status }) => status === 200)?.answer)
    expect(both.find(({ status }) => status === 409)?.answer).toEqual({
      error: { code: 'wrong_state', message: `Operator has answered this already: ${answers[0]?.answer}` },
    })
    expect(await host.answer('main', 'r-1')).toMatchObject({ result: { answers: [answers[0] ?? {}] } })
  })

  test('must be on the list of those who may write', async () => {
    const host = await open({ groups: { closed: { senders: ['ann'] } } })
    host.ask('closed', 'r-1', [colour])
    const { question } = await host.card('closed')
    expect(await host.choose('closed', question.id, { option: 1 })).toMatchObject({ status: 403 })
    expect(await host.say('closed', '1')).toMatchObject({ status: 403 })
    expect((await host.card('closed')).question.status).toBe('open')
    expect(host.isAnswered('closed', 'r-1')).toBe(false)
  })

  test('does it in the chat where it was asked', async () => {
    const host = await open()
    host.ask('closed', 'r-1', [colour])
    const { question } = await host.card('closed')
    expect(await host.choose('main', question.id, { option: 1 })).toMatchObject({ status: 404 })
    expect(await host.choose('family', question.id, { option: 1 })).toMatchObject({ status: 404 })
    expect(await host.say('main', '1')).toMatchObject({ answer: { status: 'waiting' } })
    for (const id of ['0', '-1', '1e3', 'x', `${question.id}.0`, '9'.repeat(400), '__proto__']) {
      expect(await host.choose('closed', id, { option: 1 })).toMatchObject({ status: 404 })
    }
    for (const body of [
      {},
      { option: 3 },
      { option: 1.5 },
      { text: '' },
      { question: 2, option: 1 },
      { option: 1, text: 'x' },
    ]) {
      expect(await host.choose('closed', question.id, body)).toMatchObject({ status: 400 })
    }
    expect((await host.card('closed')).question).toMatchObject({ status: 'open', answers: [null] })
  })
})
