import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Client, connect } from '../api.ts'
import { type Daemon, startDaemon } from '../assemble/main.ts'
import { type Config, configSchema } from '../config.ts'
import {
  commandsAnswer,
  type EventAnswer,
  errorContentAnswer,
  errorsAnswer,
  groupAnswer,
  groupsAnswer,
  messagesAnswer,
  resultAnswer,
  statusAnswer,
  tasksAnswer,
} from './answers.ts'
import { ApiError } from './failure.ts'

const family = { folder: 'family', jid: 'chat:1', name: 'Family' }

const folders: string[] = []
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true })
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-api-'))
  folders.push(path)
  return path
}

const makeConfig = (): Config => ({
  ...configSchema.parse({ timezone: 'UTC', logLevel: 'silent', durability: 'process' }),
  data: folder(),
})

const refusal = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ApiError)
  return error instanceof ApiError ? { code: error.code, message: error.message } : undefined
}

const command = (id: string, type: string, payload: unknown) =>
  JSON.stringify({ version: 1, id, type, payload })

/** Lets a daemon handle files on the way, whoever asks afterwards. */
async function handled(config: Config, files: string[]): Promise<void> {
  const daemon = await startDaemon(config)
  if (!daemon.host.store.groups().some(group => group.folder === 'family')) {
    expect(await daemon.host.addGroup({ ...family, main: false, dialect: 'hatchway' })).toMatchObject({
      ok: true,
    })
  }
  for (const content of files) post(join(config.data, 'ipc', 'family', 'tasks'), content)
  await vi.waitFor(() => expect(daemon.host.store.commands({ limit: 1000 })).toHaveLength(files.length), {
    timeout: 20_000,
  })
  await daemon.stop()
}

describe.each(['over the daemon’s socket', 'without a daemon'])('the API %s', way => {
  let config: Config
  let daemon: Daemon | undefined
  let client: Client

  const open = async () => {
    if (way === 'over the daemon’s socket') daemon = await startDaemon(config)
    client = await connect(config)
  }
  beforeEach(() => {
    config = makeConfig()
  })
  afterEach(async () => {
    await client.close()
    await daemon?.stop()
    daemon = undefined
  })

  test('says what the host is doing', async () => {
    await open()
    expect(client.daemon).toBe(daemon !== undefined)
    expect(await client.get('/status', statusAnswer)).toMatchObject({
      data: config.data,
      groups: 0,
      busy: false,
    })
  })

  test('adds, lists and removes groups', async () => {
    await open()
    const added = await client.post('/groups', { ...family, trigger: '@bot' }, groupAnswer)
    expect(added).toMatchObject({ ...family, trigger: '@bot', main: false, dialect: 'hatchway' })
    const [listed, ...others] = await client.get('/groups', groupsAnswer)
    expect(others).toEqual([])
    expect(listed).toMatchObject(family)
    expect(listed?.mode !== undefined).toBe(daemon !== undefined)
    await client.delete('/groups/family', resultAnswer)
    expect(await client.get('/groups', groupsAnswer)).toEqual([])
  })

  test('refuses groups that cannot be', async () => {
    await open()
    expect(await refusal(client.post('/groups', { ...family, folder: '../x' }, groupAnswer))).toMatchObject({
      code: 'invalid_field',
      message: expect.stringMatching(/^folder: /),
    })
    expect(await refusal(client.post('/groups', { ...family, surprise: 1 }, groupAnswer))).toMatchObject({
      code: 'invalid_field',
    })
    await client.post('/groups', family, groupAnswer)
    expect(await refusal(client.post('/groups', family, groupAnswer))).toMatchObject({ code: 'conflict' })
    expect(await refusal(client.delete('/groups/other', resultAnswer))).toMatchObject({ code: 'not_found' })
  })

  test('lists tasks and changes them', async () => {
    const every = { prompt: 'look', schedule_type: 'interval', schedule_value: '60000' }
    await handled(config, [command('a', 'schedule_task', every), command('b', 'schedule_task', every)])
    await open()
    const [first, second] = await client.get('/tasks?group=family', tasksAnswer)
    expect(second).toMatchObject({ group: 'family', status: 'active' })
    await client.post(`/tasks/${first?.id}/pause`, undefined, resultAnswer)
    await client.post(`/tasks/${second?.id}/cancel`, undefined, resultAnswer)
    expect(await client.get('/tasks', tasksAnswer)).toMatchObject([{ id: first?.id, status: 'paused' }])
    expect(await client.get('/tasks?all=1', tasksAnswer)).toHaveLength(2)
    await client.post(`/tasks/${first?.id}/resume`, undefined, resultAnswer)
    expect(await client.get('/tasks', tasksAnswer)).toMatchObject([{ status: 'active' }])
    expect(await refusal(client.post('/tasks/999/pause', undefined, resultAnswer))).toMatchObject({
      code: 'not_found',
    })
    expect(await refusal(client.post('/tasks/%20/pause', undefined, resultAnswer))).toMatchObject({
      code: 'invalid_field',
    })
  })

  test('shows messages page by page, or the newest', async () => {
    await handled(
      config,
      Array.from({ length: 25 }, (_, i) => command(`m${i}`, 'send_message', { text: `text ${i}` })),
    )
    await open()
    const texts = async (query: string) =>
      (await client.get(`/messages?${query}`, messagesAnswer)).map(message => message.text)
    const everything = Array.from({ length: 25 }, (_, i) => `text ${i}`)
    expect(await texts('')).toEqual(everything)
    const page = await client.get('/messages?limit=10', messagesAnswer)
    expect(await texts(`after=${page.at(-1)?.id}&limit=10`)).toEqual(everything.slice(10, 20))
    expect(await texts('last=3')).toEqual(everything.slice(-3))
    expect(await texts('last=100')).toEqual(everything)
    expect(await texts('group=other')).toEqual([])
    expect(await refusal(client.get('/messages?limit=ten', messagesAnswer))).toMatchObject({
      code: 'invalid_field',
    })
    expect(await refusal(client.get('/messages?status=lost', messagesAnswer))).toMatchObject({
      code: 'invalid_field',
    })
  })

  test('shows what was refused, its content only when asked, and replays it', async () => {
    await handled(config, ['{"version":1,"id":"x","type":"fly","payload":{"secret":"\\u001b[31m"}}'])
    await open()
    const [entry] = await client.get('/errors', errorsAnswer)
    expect(entry).toMatchObject({ source_group: 'family', code: 'unknown_type', kept: true })
    expect(await client.get('/errors?code=forbidden', errorsAnswer)).toEqual([])
    expect(await client.get(`/errors/${entry?.id}`, errorContentAnswer)).not.toHaveProperty('content')
    const { content } = await client.get(`/errors/${entry?.id}?content=1`, errorContentAnswer)
    expect(Buffer.from(content?.base64 ?? '', 'base64').toString()).toContain('"fly"')
    expect(content?.truncated).toBe(false)
    await client.post(`/errors/${entry?.id}/replay`, undefined, resultAnswer)
    expect(await refusal(client.post('/errors/nothing/replay', undefined, resultAnswer))).toMatchObject({
      code: 'not_found',
    })
    expect(await refusal(client.get('/errors/..%2f..%2fetc', errorContentAnswer))).toMatchObject({
      code: 'not_found',
    })
  })

  test('keeps the history of commands', async () => {
    await handled(config, [command('one', 'send_message', { text: 'a' }), command('two', 'fly', {})])
    await open()
    const commands = await client.get('/commands', commandsAnswer)
    expect(commands).toMatchObject([
      { group: 'family', type: 'send_message', request_id: 'one', outcome: { ok: true } },
      {
        group: 'family',
        type: 'fly',
        request_id: 'two',
        outcome: { ok: false, error: { code: 'unknown_type' } },
      },
    ])
    expect(await client.get(`/commands?after=${commands[0]?.seq}`, commandsAnswer)).toHaveLength(1)
    expect(await client.get('/commands?limit=1', commandsAnswer)).toMatchObject([{ request_id: 'two' }])
  })

  test('answers what it does not know with an error of the same shape', async () => {
    await open()
    expect(await refusal(client.get('/nowhere', resultAnswer))).toMatchObject({ code: 'not_found' })
    expect(await refusal(client.post('/tasks/1/explode', undefined, resultAnswer))).toMatchObject({
      code: 'not_found',
    })
    expect(await refusal(client.post('/groups', { name: 'x'.repeat(100_000) }, groupAnswer))).toMatchObject({
      code: 'too_large',
    })
  })
})

test('commands are seen the moment they are durable', async () => {
  const config = makeConfig()
  const daemon = await startDaemon(config)
  const client = await connect(config)
  await client.post('/groups', family, groupAnswer)
  const events: EventAnswer[] = []
  const enough = new AbortController()
  const following = client.events(
    '/events',
    event => {
      if (event.kind === 'heartbeat')
        post(join(config.data, 'ipc', 'family', 'messages'), command('e', 'fly', {}))
      events.push(event)
      if (event.kind === 'command') enough.abort()
    },
    enough.signal,
  )
  await following
  expect(events.at(-1)).toMatchObject({
    kind: 'command',
    command: { group: 'family', type: 'fly', outcome: { ok: false }, repeated: false },
  })
  await client.close()
  await daemon.stop()
})

test('what is kept of a refused file is shown without following or waiting for anything', async () => {
  const config = makeConfig()
  await handled(config, ['{"version":1,"id":"big","type":"fly","payload":{}}'])
  const small: Config = { ...config, limits: { ...config.limits, fileBytes: 10 } }
  const client = await connect(small)
  const [entry] = await client.get('/errors', errorsAnswer)
  const { content } = await client.get(`/errors/${entry?.id}?content=1`, errorContentAnswer)
  expect(content).toEqual({ base64: Buffer.from('{"version"').toString('base64'), truncated: true })
  await client.close()
})

test('a directory in the way of a refused file’s content is no content', async () => {
  const { readRefused } = await import('./refused-content.ts')
  const directory = folder()
  mkdirSync(join(directory, 'd'))
  writeFileSync(join(directory, 'f'), 'x')
  expect(readRefused(join(directory, 'd'), 10)).toBeNull()
  expect(readRefused(join(directory, 'missing'), 10)).toBeNull()
  expect(readRefused(join(directory, 'f'), 10)).toEqual({ base64: 'eA==', truncated: false })
})
