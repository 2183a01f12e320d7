import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { expect, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import { type CommandAnswer, commandsAnswer, feedEventAnswer, wholeCommandAnswer } from './answers.ts'
import { begin, byLink, openDaemon } from './testing.ts'

async function openMain(data?: string) {
  const opened = await openDaemon({}, data)
  const { host } = opened
  if (!host.store.group('main')) {
    await host.addGroup({ folder: 'main', jid: 'local:main', name: 'Main', main: true, dialect: 'hatchway' })
  }
  const tasks = join(opened.data, 'ipc', 'main', 'tasks')
  const handled = () => host.status().handled
  const drop = async (content: string) => {
    const before = handled()
    post(tasks, content)
    await until('it is handled', () => handled() > before)
  }
  const say = (id: string, type: string, payload: unknown) =>
    drop(JSON.stringify({ version: 1, id, type, payload }))
  const visitor = await byLink(opened)
  const list = async (query = '') =>
    commandsAnswer.parse((await visitor.get(`/api/host/commands${query}`)).json)
  const one = async (seq: number | undefined) =>
    wholeCommandAnswer.parse((await visitor.get(`/api/host/commands/${seq}`)).json)
  return { ...opened, drop, say, visitor, list, one }
}

test('a command can be opened as it was received, with who sent it, its steps and what was noted about it', async () => {
  const { say, list, one, host, stop, data } = await openMain()
  const text = 'hello <b>you</b> \u001b[2J'
  await say('a', 'send_message', { text })
  host.store.audit.append({
    at: Date.now(),
    group: 'main',
    actor: 'agent',
    action: 'send_message',
    summary: 'say it',
    outcome: 'allowed',
    requestId: 'a',
  })
  const [listed] = await list()
  const found = await one(listed?.seq)
  expect(JSON.parse(found.content?.text ?? '')).toMatchObject({ id: 'a', payload: { text } })
  expect(found).toMatchObject({
    content: { truncated: false },
    sender: { group: 'main', dialect: 'hatchway', main: true },
    audit: [{ summary: 'say it', outcome: 'allowed' }],
    error_id: null,
    request_id: 'a',
    outcome: { ok: true },
  })
  expect(found.steps.map(({ name }) => name)).toEqual(['written', 'claimed', 'decided', 'answered'])
  const [, claimed, decided] = found.steps.map(({ at }) => Date.parse(at))
  expect(decided).toBeGreaterThanOrEqual(claimed ?? Number.POSITIVE_INFINITY)
  // Kept in memory only: another process does not know it any more.
  await stop()
  const again = await openMain(data)
  expect(await again.one(listed?.seq)).toMatchObject({
    content: null,
    request_id: 'a',
    sender: { main: true },
  })
})

test('a refused one is shown from errors/, whatever it is', async () => {
  const { say, drop, list, one, visitor } = await openMain()
  await say('a', 'nonsense', {})
  await drop('{"version":1,"id":"b", \u0000 <script>')
  await say('c', 'send_message', { text: 'fine' })
  const refused = await list('?ok=0')
  expect(refused.map(({ outcome }) => outcome?.ok)).toEqual([false, false])
  const [unknown, broken] = await Promise.all(refused.map(({ seq }) => one(seq)))
  expect(unknown).toMatchObject({ error_id: String(unknown?.seq), content: { truncated: false } })
  expect(unknown?.content?.text).toContain('"nonsense"')
  expect(broken?.content?.text).toBe('{"version":1,"id":"b", \u0000 <script>')
  expect(broken?.steps.map(({ name, note }) => [name, note])).toContainEqual([
    'decided',
    expect.stringMatching(/^refused: /),
  ])
  expect((await visitor.get('/api/host/commands/999999')).status).toBe(404)
  expect((await visitor.get('/api/host/commands/x')).status).toBe(400)
})

test('the same request again is told from the first', async () => {
  const { say, list, one } = await openMain()
  await say('a', 'send_message', { text: 'once' })
  await say('a', 'send_message', { text: 'once' })
  const [first, second] = await list()
  expect((await one(first?.seq)).repeated).toBeUndefined()
  expect(await one(second?.seq)).toMatchObject({ repeated: true, request_id: 'a' })
})

test('lists go page by page, both ways, and by group, type and outcome', async () => {
  const { say, list, host } = await openMain()
  for (let i = 0; i < 30; i++) await say(`m${i}`, i % 3 === 0 ? 'nonsense' : 'send_message', { text: `${i}` })
  const seqs = (rows: readonly CommandAnswer[]) => rows.map(({ seq }) => seq)
  const all = seqs(await list('?limit=100'))
  expect(all).toHaveLength(30)
  expect(seqs(await list('?limit=4'))).toEqual(all.slice(-4))
  expect(seqs(await list(`?limit=4&before=${all[10]}`))).toEqual(all.slice(6, 10))
  expect(seqs(await list(`?limit=100&after=${all[10]}`))).toEqual(all.slice(11))
  expect(seqs(await list(`?after=${all[3]}&before=${all[8]}`))).toEqual(all.slice(4, 8))
  expect(await list('?ok=0')).toHaveLength(10)
  expect(await list('?ok=1')).toHaveLength(20)
  expect(await list('?ok=open')).toEqual([])
  expect(seqs(await list('?type=nonsense&limit=2'))).toEqual([all[24], all[27]])
  expect(await list('?group=nobody')).toEqual([])
  expect(host.meter.traffic.points(Date.now()).reduce((sum, { refused }) => sum + refused, 0)).toBe(10)
})

test('a command whose answer follows is open until then, and is told a second time', async () => {
  const { say, list, one, visitor, port, host } = await openMain()
  const stream = await begin({ port }, '/api/host/feed', {
    headers: { cookie: visitor.headers.cookie ?? '' },
  })
  let text = ''
  stream.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  stream.on('error', () => {})
  await until('hello is said', () => text.includes('hello'))
  await say('q', 'ask_user', {
    questions: [{ question: 'Tea?', options: [{ label: 'Yes' }, { label: 'No' }] }],
  })
  const [open] = await list('?ok=open')
  expect(open).toMatchObject({ type: 'ask_user', outcome: null })
  expect((await one(open?.seq)).steps.map(({ name }) => name)).toEqual(['written', 'claimed', 'decided'])
  expect((await visitor.get('/api/host/overview')).json.waiting).toMatchObject({ questions: 1 })
  const [question] = host.store.questions.open()
  expect((await visitor.get('/api/chats')).json).toMatchObject([{ waiting: { questions: 1, approvals: 0 } }])
  expect((await visitor.get('/api/questions')).json).toMatchObject([
    { id: String(question?.seq), group: 'main', questions: [{ question: 'Tea?' }], can_answer: true },
  ])
  // The chats hear people once the agents have been looked for.
  await until('the chats are connected', async () => {
    const path = `/api/chats/local%3Amain/questions/${question?.seq}`
    return (await visitor.change('POST', path, { option: 1 })).status === 200
  })
  const told = () =>
    [...text.matchAll(/^data: (.*)$/gm)]
      .map(match => feedEventAnswer.parse(JSON.parse(match[1] ?? '')))
      .flatMap(event => (event.kind === 'command' && event.command.seq === open?.seq ? [event.command] : []))
  await until('it was told again', () => told().length === 2)
  expect(told().map(({ outcome }) => outcome?.ok)).toEqual([undefined, true])
  const whole = await one(open?.seq)
  expect(whole.steps.map(({ name }) => name)).toEqual(['written', 'claimed', 'decided', 'answered'])
  expect(await list('?ok=open')).toEqual([])
  stream.destroy()
})
