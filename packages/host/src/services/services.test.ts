import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { servicesSchema } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { configFor, type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { launch } from '../../../testing/src/daemon/process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { diceExample, rigService } from '../../../testing/src/paths.ts'
import { until } from '../../../testing/src/until.ts'
import { createApi } from '../api/app.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import type { NewGroup } from '../commands/groups.ts'
import type { ConfigInput } from '../config.ts'

/** Requests to services through real files, with a service that does everything a service must not do. */
const rig = mkdtempSync(join(tmpdir(), 'hatchway-rig-'))
beforeAll(() => {
  process.env.HATCHWAY_RIG_DIR = rig
  return () => rmSync(rig, { recursive: true, force: true })
})
const openGate = (name: string) => writeFileSync(join(rig, name), '')
const askedFor = (id: string) =>
  (existsSync(join(rig, 'asked')) ? readFileSync(join(rig, 'asked'), 'utf8') : '')
    .split('\n')
    .filter(line => line.endsWith(` ${id}`)).length

const named = (folder: string, more: Partial<NewGroup> = {}): NewGroup => ({
  folder,
  jid: `${folder}@chat`,
  name: folder,
  main: folder === 'main',
  dialect: 'hatchway',
  ...more,
})

const open = async (groups: readonly NewGroup[], input: ConfigInput = {}): Promise<Live> => {
  const live = await openLive({ ...input, services: { plugins: [rigService], ...input.services } })
  onTestFinished(() => live.close())
  for (const group of groups) await live.host.addGroup(group)
  await live.start()
  return live
}

type Place = Pick<Live, 'layout'>
const drop = ({ layout }: Place, folder: string, body: object) =>
  post(join(layout.ipc, folder, 'tasks'), JSON.stringify(body))
const call = (place: Place, folder: string, id: string, tool: string, input: object = {}) =>
  drop(place, folder, { version: 1, id, type: 'call_service', payload: { tool, arguments: input } })
const responses = ({ layout }: Place, folder: string) => readdirSync(join(layout.ipc, folder, 'responses'))
const isAnswered = (place: Place, folder: string, id: string) =>
  responses(place, folder).includes(`${id}.json`)
const answerOf = ({ layout }: Place, folder: string, id: string) =>
  JSON.parse(readFileSync(join(layout.ipc, folder, 'responses', `${id}.json`), 'utf8'))
const answered = async (place: Place, folder: string, id: string) => {
  await until(`${id} is answered`, () => isAnswered(place, folder, id))
  return answerOf(place, folder, id)
}
const codeOf = async (place: Place, folder: string, id: string) =>
  (await answered(place, folder, id)).error?.code

describe('a request to a service', () => {
  test('is answered in version 1 and in Pynchy’s shape, with the true group', async () => {
    const live = await open([named('main'), named('py', { dialect: 'pynchy' })])
    call(live, 'main', 'r1', 'echo', { text: 'hello' })
    expect(await answered(live, 'main', 'r1')).toEqual({
      version: 1,
      id: 'r1',
      ok: true,
      result: {
        text: 'hello',
        group: { folder: 'main', jid: 'main@chat', name: 'main', main: true },
        request: 'r1',
      },
    })
    drop(live, 'py', { type: 'service:echo', request_id: 'r2', text: 'hi', groupFolder: 'main', _main: true })
    expect(await answered(live, 'py', 'r2')).toMatchObject({
      result: { text: 'hi', group: { folder: 'py', main: false } },
    })
    drop(live, 'py', { type: 'service:fail', request_id: 'r3', how: 'error' })
    expect(await answered(live, 'py', 'r3')).toEqual({ error: 'service_failed: it broke' })
  })

  test('that cannot be made is refused at once, in the open', async () => {
    const live = await open([named('main'), named('work')])
    call(live, 'work', 'a', 'no_such_tool')
    call(live, 'work', 'b', 'for_main')
    call(live, 'work', 'c', 'echo', { text: 7 })
    call(live, 'main', 'd', 'for_main')
    expect(await codeOf(live, 'work', 'a')).toBe('unavailable')
    expect(await codeOf(live, 'work', 'b')).toBe('forbidden')
    expect(await answered(live, 'work', 'c')).toMatchObject({
      error: { code: 'invalid_field', message: expect.stringContaining('text:') },
    })
    expect(await answered(live, 'main', 'd')).toMatchObject({ ok: true })
    expect(live.host.quarantine.list().map(({ code }) => code)).toEqual([
      'unavailable',
      'forbidden',
      'invalid_field',
    ])
  })

  test('is answered once, and a repeat gets the first answer', async () => {
    const live = await open([named('main')])
    call(live, 'main', 'same', 'wait_once', { gate: 'repeat' })
    await until('it is asked', () => askedFor('same') === 1)
    call(live, 'main', 'same', 'wait_once', { gate: 'repeat' })
    await until('both are handled', () => live.events.length === 2)
    expect(live.events.map(({ outcome, repeated }) => [outcome, repeated])).toEqual([
      [null, false],
      [null, true],
    ])
    openGate('repeat')
    const first = await answered(live, 'main', 'same')
    rmSync(join(live.layout.ipc, 'main', 'responses', 'same.json'))
    call(live, 'main', 'same', 'wait_once', { gate: 'another' })
    expect(await answered(live, 'main', 'same')).toEqual(first)
    expect(askedFor('same')).toBe(1)
  })

  test('with a large answer leaves the journal small, and is repeated all the same', async () => {
    const live = await open([named('main')])
    call(live, 'main', 'large', 'large', { bytes: 500_000 })
    const first = await answered(live, 'main', 'large')
    expect(first.result.text).toHaveLength(500_000)
    rmSync(join(live.layout.ipc, 'main', 'responses', 'large.json'))
    call(live, 'main', 'large', 'large', { bytes: 500_000 })
    expect(await answered(live, 'main', 'large')).toEqual(first)
    live.host.store.requests.prune(Number.MAX_SAFE_INTEGER)
    rmSync(join(live.layout.ipc, 'main', 'responses', 'large.json'))
    call(live, 'main', 'large', 'large', { bytes: 500_000 })
    expect(await codeOf(live, 'main', 'large')).toBe('expired')
  })

  test('that waits holds nobody up, and tells how far it has come', async () => {
    const live = await open([named('main'), named('work')])
    for (let i = 0; i < 60; i++) call(live, 'work', `w${i}`, 'wait', { gate: 'holds' })
    await until('they are asked', () => askedFor('w0') === 1)
    const progress = join(live.layout.ipc, 'work', 'responses', 'w0.progress.json')
    await until('it tells', () => existsSync(progress))
    expect(JSON.parse(readFileSync(progress, 'utf8'))).toEqual({
      version: 1,
      id: 'w0',
      progress: 1,
      total: 3,
      message: 'begun',
    })
    call(live, 'main', 'm', 'echo', { text: 'quick' })
    expect(await answered(live, 'main', 'm')).toMatchObject({ ok: true })
    openGate('holds')
    for (let i = 0; i < 60; i++) expect(await answered(live, 'work', `w${i}`)).toMatchObject({ ok: true })
    await until('only answers are left', () => responses(live, 'work').length === 60)
    expect(live.host.store.requests.unfinished()).toEqual([])
  })

  test('is refused when too many of its group wait', async () => {
    const live = await open([named('work')], { limits: { openRequests: 3 } })
    for (let i = 0; i < 5; i++) call(live, 'work', `q${i}`, 'wait', { gate: 'quota' })
    expect(await codeOf(live, 'work', 'q4')).toBe('quota_exceeded')
    openGate('quota')
    expect(await answered(live, 'work', 'q0')).toMatchObject({ ok: true })
  })

  test('can be taken back, by its own group alone', async () => {
    const live = await open([named('main'), named('work')])
    call(live, 'work', 'back', 'wait', { gate: 'never opened' })
    await until('it is asked', () => askedFor('back') === 1)
    drop(live, 'main', { version: 1, id: 'x', type: 'cancel_request', payload: { request_id: 'back' } })
    expect(await codeOf(live, 'main', 'x')).toBe('not_found')
    drop(live, 'work', { version: 1, id: 'y', type: 'cancel_request', payload: { request_id: 'back' } })
    expect(await answered(live, 'work', 'y')).toMatchObject({ ok: true, result: { status: 'cancelled' } })
    expect(await codeOf(live, 'work', 'back')).toBe('cancelled')
    expect(responses(live, 'work').filter(name => name.includes('progress'))).toEqual([])
  })
})

describe('a service that', () => {
  test.each([
    ['never', {}, 'expired'],
    ['late', { gate: 'late' }, 'expired'],
    ['fail', { how: 'error' }, 'service_failed'],
    ['fail', { how: 'text' }, 'service_failed'],
    ['fail', { how: 'at once' }, 'service_failed'],
    ['fail', { how: 'refusal' }, 'not_found'],
    ['answer', { what: 'huge' }, 'answer_too_large'],
    ['answer', { what: 'nothing' }, 'service_failed'],
    ['answer', { what: 'a time' }, 'service_failed'],
    ['answer', { what: 'list' }, 'service_failed'],
    ['answer', { what: 'circle' }, 'service_failed'],
    ['answer', { what: 'deep' }, 'service_failed'],
    ['answer', { what: 'bigint' }, 'service_failed'],
  ])('%s %o is answered with %s', async (tool, input, code) => {
    const live = await open([named('main')])
    call(live, 'main', 'bad', tool, input)
    expect(await codeOf(live, 'main', 'bad')).toBe(code)
    if (tool === 'late') {
      openGate('late')
      await until('it has answered', () =>
        readFileSync(join(rig, 'asked'), 'utf8').includes('late has answered'),
      )
      expect(await codeOf(live, 'main', 'bad')).toBe('expired')
    }
    call(live, 'main', 'good', 'echo', { text: 'still here' })
    expect(await answered(live, 'main', 'good')).toMatchObject({ ok: true })
  })
})

describe('todos', () => {
  const listed = ({ layout }: Place, folder: string) =>
    JSON.parse(readFileSync(join(layout.ipc, folder, 'todos.json'), 'utf8'))

  test('are added, completed and listed, each group’s for itself, and todos.json follows', async () => {
    const live = await open([named('main'), named('py', { dialect: 'pynchy' })])
    drop(live, 'py', { type: 'service:add_todo', request_id: 'a', content: 'buy milk' })
    const { todo } = (await answered(live, 'py', 'a')).result
    expect(todo).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}$/),
      content: 'buy milk',
      done: false,
      created_at: expect.any(String),
    })
    // Whoever has the answer finds it in the file, too.
    expect(listed(live, 'py')).toEqual([todo])
    call(live, 'main', 'b', 'complete_todo', { todo_id: todo.id })
    expect(await codeOf(live, 'main', 'b')).toBe('not_found')
    drop(live, 'py', { type: 'service:complete_todo', request_id: 'c', todo_id: todo.id })
    expect((await answered(live, 'py', 'c')).result).toEqual({ todo: { ...todo, done: true } })
    expect(listed(live, 'py')).toEqual([{ ...todo, done: true }])
    drop(live, 'py', { type: 'service:list_todos', request_id: 'd' })
    expect((await answered(live, 'py', 'd')).result).toEqual({ todos: [] })
    drop(live, 'py', { type: 'service:list_todos', request_id: 'e', include_done: true })
    expect((await answered(live, 'py', 'e')).result.todos).toHaveLength(1)
    drop(live, 'py', { type: 'service:add_todo', request_id: 'f', content: ' ' })
    expect((await answered(live, 'py', 'f')).error).toContain('invalid_field')
  })

  test('are added by a person who says so, beside an agent that is at it', async () => {
    const live = await open([named('main', { jid: 'local:main' }), named('work', { jid: 'local:work' })], {
      agents: { enabled: 'no' },
    })
    await live.host.startAgents()
    const web = live.host.chats?.web
    for (let i = 0; i < 20; i++) {
      call(live, 'main', `t${i}`, 'add_todo', { content: `the agent’s ${i}` })
      expect(await web?.post({ jid: 'local:main', text: `todo: mine ${i}`, id: `m${i}` })).toMatchObject({
        ok: true,
        status: 'context',
      })
    }
    // Redelivered, it is not added again.
    await web?.post({ jid: 'local:main', text: 'todo: mine 0', id: 'm0' })
    await web?.post({ jid: 'local:work', text: '@Hatch TODO call home' })
    await web?.post({ jid: 'local:work', text: 'todoist is a program' })
    await until('the agent’s are answered', () => responses(live, 'main').length === 20)
    expect(listed(live, 'main')).toHaveLength(40)
    expect(listed(live, 'work')).toMatchObject([{ content: 'call home', done: false }])
    expect(live.host.store.messages({ group: 'work' })).toMatchObject([{ text: 'On the list: call home' }])
  })

  test('are bounded, and no update is lost when both sides are at it', async () => {
    const live = await open([named('main')], { limits: { openTodos: 150 } })
    for (let i = 0; i < 200; i++) call(live, 'main', `t${i}`, 'add_todo', { content: `todo ${i}` })
    await until('all are answered', () => responses(live, 'main').length === 200)
    const codes = Array.from({ length: 200 }, (_, i) => answerOf(live, 'main', `t${i}`).error?.code ?? 'done')
    expect(codes.filter(code => code === 'done')).toHaveLength(150)
    expect(codes.filter(code => code === 'quota_exceeded')).toHaveLength(50)
    expect(listed(live, 'main')).toHaveLength(150)
  })
})

test('services.json tells a group what it may ask for, and the API tells people', async () => {
  const live = await open([named('main'), named('work'), named('py', { dialect: 'pynchy' })])
  const listing = (folder: string) =>
    servicesSchema.parse(JSON.parse(readFileSync(join(live.layout.ipc, folder, 'services.json'), 'utf8')))
  await until('it is written', () => existsSync(join(live.layout.ipc, 'work', 'services.json')))
  const names = listing('work').tools.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['list_todos', 'echo', 'wait']))
  expect(names).not.toContain('for_main')
  expect(listing('main').tools.map(({ name }) => name)).toContain('for_main')
  expect(listing('main').tools.find(({ name }) => name === 'echo')).toMatchObject({
    service: 'rig',
    answers: 'facts',
    timeout_ms: 120_000,
    input_schema: { properties: { text: { type: 'string', maxLength: 100 } }, required: ['text'] },
  })
  expect(existsSync(join(live.layout.ipc, 'py', 'services.json'))).toBe(false)
  call(live, 'work', 'open', 'wait', { gate: 'never for the API' })
  await until('it is asked', () => askedFor('open') === 1)
  const api = createApi(live.host)
  expect(await (await api.request('/services')).json()).toContainEqual(
    expect.objectContaining({ name: 'rig', ok: true, text: 'ready' }),
  )
  expect(await (await api.request('/requests')).json()).toMatchObject([
    { group: 'work', id: 'open', tool: 'wait' },
  ])
})

test('the example of the documentation works, and a plugin that cannot be used is told of', async () => {
  const broken = join(rig, 'broken.service.mjs')
  writeFileSync(broken, 'export default { name: 7 }')
  const missing = join(rig, 'missing.service.mjs')
  const live = await open([named('main')], { services: { plugins: [diceExample, broken, missing] } })
  call(live, 'main', 'roll', 'roll_dice', { dice: 3 })
  const { result } = await answered(live, 'main', 'roll')
  expect(result.shown).toHaveLength(3)
  call(live, 'main', 'loaded', 'roll_dice', { dice: 300 })
  expect(await codeOf(live, 'main', 'loaded')).toBe('invalid_field')
  expect(live.host.services()?.catalogue.services().slice(-3)).toMatchObject([
    { name: 'dice', ok: true },
    { name: broken, ok: false, text: expect.stringContaining('defineService') },
    { name: missing, ok: false },
  ])
})

test('1,000 requests at once from 100 groups are all answered', async () => {
  const groups = Array.from({ length: 100 }, (_, i) => named(`g${i}`))
  const live = await open(groups)
  for (let i = 0; i < 10; i++) {
    for (const { folder } of groups) call(live, folder, `r${i}`, 'echo', { text: `${folder} ${i}` })
  }
  for (const { folder } of groups) {
    for (let i = 0; i < 10; i++) {
      expect(await answered(live, folder, `r${i}`)).toMatchObject({
        ok: true,
        result: { text: `${folder} ${i}`, group: { folder } },
      })
    }
  }
})

test('a group that is removed has its requests withdrawn', async () => {
  const live = await open([named('main'), named('work')])
  call(live, 'work', 'gone', 'wait', { gate: 'not for the gone' })
  await until('it is asked', () => askedFor('gone') === 1)
  await live.host.removeGroup('work')
  await until('nothing is open', () => live.host.store.requests.unfinished().length === 0)
  expect(isAnswered(live, 'work', 'gone')).toBe(false)
})

test('answers that nobody takes are removed', async () => {
  const live = await open([named('work')], { services: { unreadMs: 1000 } })
  call(live, 'work', 'left', 'echo', { text: 'x' })
  await answered(live, 'work', 'left')
  mkdirSync(join(live.layout.ipc, 'work', 'responses', 'directory.json'))
  await until('it is gone', () => !isAnswered(live, 'work', 'left'), 60_000)
  expect(responses(live, 'work')).toEqual(['directory.json'])
})

describe('a restart in the middle', () => {
  const start = async (data: string) => {
    const config = join(data, '..', `${data.split('/').at(-1)}.config.mjs`)
    writeFileSync(config, `export default { services: { plugins: [${JSON.stringify(rigService)}] } }`)
    const daemon = launch(data, { env: { HATCHWAY_CONFIG: config, HATCHWAY_RIG_DIR: rig } })
    await daemon.ready
    onTestFinished(async () => {
      await daemon.kill()
      rmSync(config, { force: true })
    })
    return daemon
  }

  test.each(['kill', 'stop'] as const)('by %s: asked again if that is safe, else answered so', async end => {
    const data = temporaryFolder('restart')
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const place = { layout: layoutOf(data) }
    await registerGroups(configFor(data), [named('work')])
    const daemon = await start(data)
    const [safe, once] = [`safe-${end}`, `once-${end}`]
    call(place, 'work', safe, 'wait', { gate: end })
    call(place, 'work', once, 'wait_once', { gate: end })
    await until('both are asked', () => askedFor(safe) === 1 && askedFor(once) === 1)
    await daemon[end]()
    await start(data)
    expect(await codeOf(place, 'work', once)).toBe('interrupted')
    await until('it is asked again', () => askedFor(safe) === 2)
    expect(isAnswered(place, 'work', safe)).toBe(false)
    openGate(end)
    expect(await answered(place, 'work', safe)).toMatchObject({ ok: true, result: { waited: end } })
    expect(askedFor(once)).toBe(1)
  })
})
