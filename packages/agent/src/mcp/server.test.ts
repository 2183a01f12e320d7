import { mkdirSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type Bare,
  clients,
  connect,
  ipcFolder,
  jsonFiles,
  onlyFile,
  startBare,
  temporaryFolder,
  until,
} from './testing.ts'

/** The server as a process, without a host: what it does when nobody answers, and when nobody asks. */

const everything = (folder: string) => readdirSync(folder, { recursive: true }).sort()

const initialize = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const discover = {
  id: 'probe',
  method: 'server/discover',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
}

const messages = (server: Bare): { id?: unknown; result?: Record<string, unknown> }[] =>
  server
    .out()
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

const answered = async (server: Bare, id: unknown) => {
  await until(() => messages(server).some(message => message.id === id))
  return messages(server).find(message => message.id === id)
}

/** The handshake, and a call that nobody answers. */
async function startCall(environment: Record<string, string> = {}) {
  const ipc = ipcFolder()
  const server = startBare({ HATCHWAY_IPC: ipc, ...environment })
  server.send(initialize)
  await answered(server, 1)
  server.send({ method: 'notifications/initialized' })
  server.send({ id: 2, method: 'tools/call', params: { name: 'send_message', arguments: { text: 'hello' } } })
  await onlyFile(join(ipc, 'messages'))
  return { ipc, server }
}

describe('starting', () => {
  test.each(Object.entries(clients))('has no effect: %s', async (_, connectClient) => {
    const ipc = ipcFolder()
    const before = everything(ipc)
    const client = await connectClient({ HATCHWAY_IPC: ipc })
    expect((await client.tools()).length).toBeGreaterThan(0)
    await client.close()
    expect(everything(ipc)).toEqual(before)
  })

  test('makes nothing where nothing is, neither in its directory nor in the one it is started in', async () => {
    const folder = temporaryFolder()
    const server = startBare({ HATCHWAY_IPC: join(folder, 'ipc') }, folder)
    server.send(initialize)
    await answered(server, 1)
    server.child.stdin.end()
    await server.exited
    expect(everything(folder)).toEqual([])
  })

  test('may be preceded by server/discover, by a client that then falls back to initialize', async () => {
    const server = startBare({ HATCHWAY_IPC: ipcFolder() })
    server.send(discover)
    expect((await answered(server, 'probe'))?.result).toMatchObject({ supportedVersions: ['2026-07-28'] })
    server.send(initialize)
    expect((await answered(server, 1))?.result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'hatchway' },
    })
  })

  test('fails with a word about it where the environment makes no sense', async () => {
    const server = startBare({ HATCHWAY_MAIN: 'perhaps' })
    expect((await server.exited).code).not.toBe(0)
    expect(server.err()).toContain('HATCHWAY_MAIN')
    expect(server.out()).toBe('')
  })
})

describe('ending', () => {
  const ways: [string, (server: Bare) => void][] = [
    ['SIGINT', ({ child }) => void child.kill('SIGINT')],
    ['SIGTERM', ({ child }) => void child.kill('SIGTERM')],
    ['the end of input', ({ child }) => void child.stdin.end()],
  ]

  test.each(ways)('%s ends it', async (_, end) => {
    const server = startBare({ HATCHWAY_IPC: ipcFolder() })
    server.send(initialize)
    await answered(server, 1)
    end(server)
    expect(await server.exited).toEqual({ code: 0, signal: null })
  })

  test('the end of input ends it before anything was said', async () => {
    const server = startBare({ HATCHWAY_IPC: ipcFolder() })
    server.child.stdin.end()
    expect(await server.exited).toEqual({ code: 0, signal: null })
  })

  test.each(ways)('%s ends it in the middle of a call, whose request is taken back', async (_, end) => {
    const { ipc, server } = await startCall()
    end(server)
    expect(await server.exited).toEqual({ code: 0, signal: null })
    expect(jsonFiles(join(ipc, 'messages'))).toEqual([])
  })

  test('output that nobody reads ends it', async () => {
    const { server } = await startCall({ HATCHWAY_ANSWER_TIMEOUT_MS: '100' })
    server.child.stdout.destroy()
    expect(await server.exited).toEqual({ code: 0, signal: null })
  })
})

describe('what is offered', () => {
  const ofEveryGroup = [
    'send_message',
    'schedule_task',
    'list_tasks',
    'update_task',
    'pause_task',
    'resume_task',
    'cancel_task',
    'show_withheld',
  ]
  const ofMain = ['register_group', 'unregister_group', 'list_groups', 'refresh_groups']

  test('follows privilege', async () => {
    const ipc = ipcFolder()
    const main = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_MAIN: '1' })
    expect((await main.tools()).map(({ name }) => name)).toEqual([...ofEveryGroup, ...ofMain])
    for (const HATCHWAY_MAIN of ['0', '']) {
      const other = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_MAIN })
      expect((await other.tools()).map(({ name }) => name)).toEqual(ofEveryGroup)
      await expect(other.call('refresh_groups')).rejects.toThrow('refresh_groups')
    }
    expect(jsonFiles(join(ipc, 'tasks'))).toEqual([])
  })

  test('has a title, a description, an output schema and every annotation', async () => {
    const client = await connect({ HATCHWAY_IPC: ipcFolder(), HATCHWAY_MAIN: '1' })
    for (const tool of await client.tools()) {
      expect(tool).toMatchObject({
        title: expect.any(String),
        description: expect.any(String),
        inputSchema: { type: 'object', additionalProperties: false },
        outputSchema: { type: 'object' },
        annotations: {
          readOnlyHint: tool.name.startsWith('list_'),
          destructiveHint: ['update_task', 'cancel_task', 'unregister_group'].includes(tool.name),
          idempotentHint: !['send_message', 'schedule_task'].includes(tool.name),
          openWorldHint: tool.name === 'send_message',
        },
      })
    }
  })

  test('says which zone times are in', async () => {
    const client = await connect({ HATCHWAY_IPC: ipcFolder(), TZ: 'America/Lima' })
    const schedule = (await client.tools()).find(({ name }) => name === 'schedule_task')
    expect(schedule?.description).toContain('America/Lima')
  })
})

describe.each(Object.entries(clients))('a call that nobody answers, %s', (_, connectClient) => {
  test('is taken back when its time is up, and told as not having happened', async () => {
    const ipc = ipcFolder()
    const client = await connectClient({ HATCHWAY_IPC: ipc, HATCHWAY_ANSWER_TIMEOUT_MS: '100' })
    const { text, facts, failure } = await client.call('send_message', { text: 'hello' })
    expect(text).toMatch(/^This did not happen and will not: /)
    expect(facts).toBeUndefined()
    expect(failure).toMatchObject({ code: 'withdrawn', request_id: expect.any(String) })
    expect(jsonFiles(join(ipc, 'messages'))).toEqual([])
  })

  test('is told as unknown, with its id, where the host has taken it', async () => {
    const ipc = ipcFolder()
    const client = await connectClient({ HATCHWAY_IPC: ipc, HATCHWAY_ANSWER_TIMEOUT_MS: '3000' })
    const call = client.call('send_message', { text: 'hello' })
    const { id, path } = await onlyFile(join(ipc, 'messages'))
    unlinkSync(path)
    const { text, failure } = await call
    expect(text).toMatch(/^It is unknown whether this happened: /)
    expect(text).toContain(id)
    expect(failure).toMatchObject({ code: 'unknown_outcome', request_id: id })
  })

  test('tells of its waiting, to a client that wants to know', async () => {
    const client = await connectClient({
      HATCHWAY_IPC: ipcFolder(),
      HATCHWAY_ANSWER_TIMEOUT_MS: '2000',
      HATCHWAY_PROGRESS_MS: '50',
    })
    const heard: number[] = []
    await client.call('send_message', { text: 'x' }, { onprogress: ({ progress }) => heard.push(progress) })
    expect(heard.length).toBeGreaterThan(1)
    expect(heard).toEqual(heard.toSorted((a, b) => a - b))
  })

  test('is taken back when the client cancels it, and the next call is served', async () => {
    const ipc = ipcFolder()
    const client = await connectClient({ HATCHWAY_IPC: ipc })
    const controller = new AbortController()
    const call = client.call('send_message', { text: 'hello' }, { signal: controller.signal })
    await onlyFile(join(ipc, 'messages'))
    controller.abort('changed my mind')
    await expect(call).rejects.toThrow()
    await until(() => jsonFiles(join(ipc, 'messages')).length === 0)
    expect((await client.call('list_tasks')).failure).toMatchObject({ code: 'no_snapshot' })
  })
})

describe('a call that is not valid', () => {
  test.each([
    ['a field of the wrong type', 'send_message', { text: 7 }],
    ['a field that is missing', 'send_message', {}],
    ['a field that does not exist', 'send_message', { text: 'x', chat: 'b@chat' }],
  ])('is answered as an error and sends nothing: %s', async (_, name, args) => {
    const ipc = ipcFolder()
    const server = startBare({ HATCHWAY_IPC: ipc })
    server.send(initialize)
    await answered(server, 1)
    server.send({ id: 2, method: 'tools/call', params: { name, arguments: args } })
    expect((await answered(server, 2))?.result).toMatchObject({ isError: true })
    expect(jsonFiles(join(ipc, 'messages'))).toEqual([])
  })

  test('is refused by the host’s rules, under the tool’s own names for the fields', async () => {
    const ipc = ipcFolder()
    const client = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_MAIN: '1' })
    const schedule = { prompt: 'x', schedule_type: 'once', schedule_value: '2030-01-01T00:00:00' }
    const chat = await client.call('schedule_task', { ...schedule, target_group_jid: 'two words' })
    expect(chat.text).toMatch(/^Nothing was sent \(invalid_field\): target_group_jid: must be /)
    const group = { jid: 'x', name: 'x', trigger: '@x' }
    const folder = await client.call('register_group', { ...group, folder: '../..' })
    expect(folder.text).toMatch(/^Nothing was sent \(invalid_field\): folder: must be /)
    expect(folder.failure).toMatchObject({ code: 'invalid_field' })
    expect(jsonFiles(join(ipc, 'tasks'))).toEqual([])
  })
})

describe('lists', () => {
  const files = [
    ['list_tasks', 'current_tasks.json'],
    ['list_groups', 'available_groups.json'],
  ] as const

  test.each(files)('%s says that %s is missing, and not that the list is empty', async (tool, file) => {
    const client = await connect({ HATCHWAY_IPC: ipcFolder(), HATCHWAY_MAIN: '1' })
    const { text, failure } = await client.call(tool)
    expect(text).toContain(`${file} is not there`)
    expect(failure).toMatchObject({ code: 'no_snapshot' })
  })

  test.each(files)('%s says that %s is of no use', async (tool, file) => {
    const ipc = ipcFolder()
    const path = join(ipc, file)
    const client = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_MAIN: '1' })
    for (const content of ['', '{', '[{"id":"x"}]', '{"groups":[{}]}', 'secret']) {
      writeFileSync(path, content)
      const { text } = await client.call(tool)
      expect(text).toContain(`${file} is of no use`)
      expect(text).not.toContain('secret')
    }
    unlinkSync(path)
    mkdirSync(path)
    expect((await client.call(tool)).text).toContain('not a regular file')
  })

  test('are shown when they are there, if empty', async () => {
    const ipc = ipcFolder()
    writeFileSync(join(ipc, 'current_tasks.json'), '[]')
    writeFileSync(join(ipc, 'available_groups.json'), '{"groups":[],"synced_at":"2030-01-01T00:00:00.000Z"}')
    const client = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_MAIN: '1' })
    expect((await client.call('list_tasks')).facts).toEqual({ tasks: [] })
    expect((await client.call('list_groups')).facts).toMatchObject({ groups: [] })
  })
})

test('standard output is only MCP, also when there is something to complain about', async () => {
  const ipc = temporaryFolder()
  const server = startBare({ HATCHWAY_IPC: ipc })
  server.send(initialize)
  server.child.stdin.write('this is not JSON\n')
  server.send({ id: 2, method: 'tools/call', params: { name: 'send_message', arguments: { text: 'x' } } })
  expect((await answered(server, 2))?.result).toMatchObject({ isError: true })
  for (const message of messages(server)) expect(message).toMatchObject({ jsonrpc: '2.0' })
})
