import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '@hatchway/spool'
import { expect, test } from 'vitest'
import { createRandom } from '../../../testing/src/random.ts'
import { until } from '../../../testing/src/until.ts'
import { type FeedEventAnswer, feedEventAnswer } from './answers.ts'
import { createApi } from './app.ts'
import { begin, byLink, openDaemon } from './testing.ts'

async function openFamily() {
  const opened = await openDaemon()
  const { host, data } = opened
  await host.addGroup({ folder: 'family', jid: 'chat:1', name: 'Family', main: false, dialect: 'hatchway' })
  let sent = 0
  const say = (type = 'send_message') => {
    const id = `m${++sent}`
    const payload = { text: `message ${sent}` }
    post(join(data, 'ipc', 'family', 'tasks'), JSON.stringify({ version: 1, id, type, payload }))
  }
  return { ...opened, say, sent: () => sent, visitor: await byLink(opened) }
}
type Family = Awaited<ReturnType<typeof openFamily>>

/** Reads until it is told to stop; what it has seen last is where the next one goes on. */
async function read({ port, visitor }: Family, after?: string) {
  const headers: Record<string, string> = { cookie: visitor.headers.cookie ?? '' }
  if (after !== undefined) headers['last-event-id'] = after
  const response = await begin({ port }, '/api/host/feed', { headers })
  expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  const events: FeedEventAnswer[] = []
  let last = after
  let text = ''
  let ended = false
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (data === undefined) continue
      events.push(feedEventAnswer.parse(JSON.parse(data)))
      last = /^id: (.*)$/m.exec(block)?.[1] ?? last
    }
  })
  response.on('close', () => {
    ended = true
  })
  response.on('error', () => {})
  await until('hello is said', () => events.length > 0)
  return {
    events,
    commands: () => events.flatMap(event => (event.kind === 'command' ? [event.command] : [])),
    last: () => last,
    ended: () => ended,
    stop: () => response.destroy(),
  }
}

test('who looks sees commands as they are handled, what has changed, and how much there is', async () => {
  const family = await openFamily()
  const reader = await read(family)
  expect(reader.events[0]).toEqual({ kind: 'hello', complete: true })
  family.say()
  family.say('nonsense')
  await family.host.perform({
    type: 'schedule_task',
    payload: {
      group: 'family',
      prompt: 'x',
      schedule_type: 'interval',
      schedule_value: '60000',
      context_mode: 'group',
    },
  })
  await family.visitor.change('POST', '/api/host/groups', { folder: 'shop', jid: 'chat:2', name: 'Shop' })
  const kinds = () => new Set(reader.events.flatMap(event => (event.kind === 'changed' ? [event.what] : [])))
  await until('all of it was told', () =>
    ['tasks', 'groups', 'errors', 'messages'].every(what => [...kinds()].some(kind => kind === what)),
  )
  expect(reader.commands()).toMatchObject([
    { group: 'family', type: 'send_message', outcome: { ok: true }, repeated: false },
    { type: 'nonsense', outcome: { ok: false, error: { code: 'unknown_type' } } },
  ])
  await until('the traffic was told', () => {
    const points = reader.events.flatMap(event => (event.kind === 'traffic' ? [event] : []))
    const sum = (of: 'handled' | 'refused') => points.reduce((total, point) => total + point[of], 0)
    return sum('handled') === 2 && sum('refused') === 1
  })
  reader.stop()
})

test('nothing is missed or told twice by a reader whose connection breaks again and again under load', async () => {
  const family = await openFamily()
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = createRandom(seed)
  const all = 4000
  const first = await read(family)
  first.stop()
  const seen: number[] = []
  const produce = (async () => {
    while (family.sent() < all) {
      // Never so far ahead that a slow machine's reader would have to read everything again.
      if (family.sent() - seen.length < 1500) for (let i = 0; i < 40; i++) family.say()
      await sleep(2)
    }
  })()
  let last = first.last()
  let breaks = 0
  while (seen.length < all) {
    const reader = await read(family, last)
    const [hello] = reader.events
    expect([seed, breaks, hello]).toEqual([seed, breaks, { kind: 'hello', complete: true }])
    const wanted = 1 + random.below(300)
    await until(
      `${wanted} more came`,
      () => reader.commands().length >= wanted || seen.length + reader.commands().length >= all,
    )
    reader.stop()
    last = reader.last()
    seen.push(...reader.commands().map(({ seq }) => seq))
    breaks++
  }
  await produce
  expect(breaks).toBeGreaterThan(5)
  expect(seen).toEqual(seen.toSorted((a, b) => a - b))
  expect(new Set(seen).size).toBe(all)
})

test('who was away for too long, or knows another process’s numbers, is told to read everything again', async () => {
  const family = await openFamily()
  const first = await read(family)
  first.stop()
  await until('it is gone', () => first.ended())
  const handled = family.host.status().handled
  for (let i = 0; i < 4100; i++) family.say()
  await until('all is handled', () => family.host.status().handled === handled + 4100)
  for (const id of [first.last() ?? '', 'abc-1', 'rubbish', `${first.last()?.split('-')[0]}-99999999`]) {
    const reader = await read(family, id)
    expect(reader.events[0]).toEqual({ kind: 'hello', complete: false })
    reader.stop()
  }
})

test('a reader that does not keep up is sent away, to come back for what it missed', async () => {
  const family = await openFamily()
  const api = createApi(family.host, { eventBufferBytes: 4000 })
  const response = await api.request('/feed')
  for (let i = 0; i < 100; i++) family.say()
  await until('all is handled', () => family.host.status().handled === 100)
  // Only now does it read: what it was given before it was sent away, and then the end.
  let text = ''
  for await (const part of response.body ?? []) text += Buffer.from(part).toString('utf8')
  const ids = [...text.matchAll(/^id: (.*)$/gm)].map(match => match[1] ?? '')
  expect(text.match(/"kind":"command"/g)?.length).toBeLessThan(100)
  const again = await read(family, ids.at(-1))
  expect(again.events[0]).toEqual({ kind: 'hello', complete: true })
  const before = [...text.matchAll(/"kind":"command","command":\{"seq":(\d+)/g)].map(match =>
    Number(match[1]),
  )
  await until('the rest came', () => before.length + again.commands().length === 100)
  expect(new Set([...before, ...again.commands().map(({ seq }) => seq)]).size).toBe(100)
  again.stop()
})

test('the end of the daemon ends the streams, and nobody who looks keeps it from ending', async () => {
  const family = await openFamily()
  const reader = await read(family)
  await family.stop()
  await until('the stream has ended', () => reader.ended())
})
