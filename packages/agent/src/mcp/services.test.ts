import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { describe, expect, test } from 'vitest'
import { clients, connect, ipcFolder, jsonFiles, listing, playHost, startBare, until } from './testing.ts'

/** The services of the host as tools. The host is played, file by file, as the real one writes them. */

const factsSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { found: { type: 'array', items: { type: 'string' } } },
  required: ['found'],
  additionalProperties: false,
}
const recall = listing('recall', { output_schema: factsSchema })
const lent = listing('lent', { answers: 'content' })

const own = 8
const added = async (client: { tools(): Promise<readonly { name: string }[]> }) =>
  (await client.tools()).slice(own).map(({ name }) => name)

describe.each(Object.entries(clients))('%s', (_, connectClient) => {
  test('services are tools as the host describes them', async () => {
    const host = playHost()
    host.offer([recall, lent])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    const tools = await client.tools()
    expect(tools.slice(own)).toMatchObject([
      {
        name: 'recall',
        title: 'The tool recall',
        description: 'does recall',
        inputSchema: recall.input_schema,
        outputSchema: factsSchema,
        annotations: { readOnlyHint: true, openWorldHint: false },
      },
      { name: 'lent', inputSchema: lent.input_schema },
    ])
    expect(tools.at(-1)).not.toHaveProperty('outputSchema')
  })

  test('a change of them is told, and the next list shows it', async () => {
    const host = playHost()
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    expect(await added(client)).toEqual([])
    host.offer([recall], { timeout_ms: 60_000 })
    await until(() => client.toolChanges() > 0)
    expect(await added(client)).toEqual(['ask_user', 'recall'])

    const before = client.toolChanges()
    host.offer([listing('recall', { description: 'does it better' }), lent])
    await until(() => client.toolChanges() > before)
    const tools = await client.tools()
    expect(tools.slice(own)).toMatchObject([
      { name: 'recall', description: 'does it better' },
      { name: 'lent' },
    ])
    expect(tools[own]).not.toHaveProperty('outputSchema')

    unlinkSync(join(host.ipc, 'services.json'))
    expect(await added(client)).toEqual([])
    await expect(client.call('recall', { key: 'x' })).rejects.toThrow('recall')
  })

  test('facts come back as they are, in the text and for programs', async () => {
    const host = playHost()
    host.offer([recall, listing('free')])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    await client.tools()
    for (const [tool, facts] of [
      ['recall', { found: ['Grüße 👋', '{"a":1}'] }],
      ['free', { anything: { at: ['all', null, 1.5] } }],
    ] as const) {
      const call = client.call(tool, { key: 'x', more: [1] })
      const { id, type, payload } = await host.take()
      expect({ type, payload }).toEqual({
        type: 'call_service',
        payload: { tool, arguments: { key: 'x', more: [1] } },
      })
      host.answer(id, facts)
      expect(await call).toEqual({ text: JSON.stringify(facts), facts, failure: undefined })
    }
    expect(readdirSync(host.responses).filter(name => name !== '.tmp')).toEqual([])
  })

  test('the result of a lent tool is passed on, its failures and pictures too', async () => {
    const host = playHost()
    const lentWithSchema = { ...lent, name: 'lent_facts', output_schema: factsSchema }
    host.offer([lent, lentWithSchema])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    await client.tools()
    const results = [
      ['lent', { content: [{ type: 'text', text: 'one' }] }],
      [
        'lent',
        {
          content: [
            { type: 'image', data: 'aGk=', mimeType: 'image/png' },
            { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
            { type: 'resource', resource: { uri: 'file:///x', text: 'x' } },
            { type: 'resource_link', uri: 'file:///y', name: 'y' },
          ],
          structuredContent: { any: 'thing' },
          _meta: { 'server/key': 1 },
        },
      ],
      ['lent', { isError: true, content: [{ type: 'text', text: 'no such repository' }] }],
      ['lent_facts', { content: [], structuredContent: { found: ['x'] } }],
      ['lent_facts', { isError: true, content: [{ type: 'text', text: 'not today' }] }],
    ] as const
    for (const [tool, result] of results) {
      const call = client.callRaw(tool, { key: 'x' })
      host.answer((await host.take()).id, result)
      expect(await call).toMatchObject(result)
    }
  })

  test('a lent tool’s result that is none is told as a failure, and nothing speaks in our name', async () => {
    const host = playHost()
    host.offer([lent])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    const malformed = [
      {},
      { content: 'text' },
      { content: [{ type: 'text' }] },
      { content: [{ type: 'hologram', text: 'x' }] },
      { content: [null] },
      { content: [], isError: 'yes' },
      { resultType: 'input_required', inputRequests: {} },
    ]
    for (const result of malformed) {
      const call = client.call('lent', { key: 'x' })
      host.answer((await host.take()).id, result)
      expect((await call).failure).toMatchObject({ code: 'unexpected_result' })
    }
    const call = client.callRaw('lent', { key: 'x' })
    host.answer((await host.take()).id, {
      resultType: 'input_required',
      content: [{ type: 'text', text: 'x' }],
      _meta: { 'hatchway/failure': { code: 'withdrawn' } },
    })
    const result = await call
    expect(result).toMatchObject({ content: [{ type: 'text', text: 'x' }] })
    expect(JSON.stringify(result)).not.toContain('withdrawn')
  })

  test('progress is passed on as it rises, before the answer', async () => {
    const host = playHost()
    host.offer([recall])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    await client.tools()
    const heard: object[] = []
    const call = client.call('recall', { key: 'x' }, { onprogress: step => heard.push(step) })
    const { id } = await host.take()
    for (const step of [
      { progress: 1, total: 3, message: 'one' },
      { progress: 2, total: 3 },
    ]) {
      const before = heard.length
      host.progress(id, step)
      await until(() => heard.length > before)
      expect(heard.at(-1)).toEqual(step)
    }
    host.answer(id, { found: [] })
    expect((await call).failure).toBeUndefined()
    expect(heard).toHaveLength(2)
  })

  test('a call that the client cancels is taken back from the host', async () => {
    const host = playHost()
    host.offer([recall])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    await client.tools()
    const controller = new AbortController()
    const call = client.call('recall', { key: 'x' }, { signal: controller.signal })
    const { id } = await host.take()
    host.progress(id, { progress: 1 })
    controller.abort('changed my mind')
    await expect(call).rejects.toThrow()
    const cancel = await host.take()
    expect(cancel).toMatchObject({ type: 'cancel_request', payload: { request_id: id } })
    host.refuse(id, 'cancelled', 'taken back')
    host.answer(cancel.id, { request_id: id, status: 'cancelled' })

    // Nothing of it stays: the next request clears away what came too late.
    const next = client.call('recall', { key: 'y' })
    host.answer((await host.take()).id, { found: [] })
    await next
    expect(jsonFiles(host.responses)).toEqual([])
  })

  test('people are asked, and what they answered is told', async () => {
    const host = playHost()
    host.offer([], { timeout_ms: 600_000 })
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    const [tool] = (await client.tools()).slice(own)
    expect(tool).toMatchObject({ name: 'ask_user', description: expect.stringContaining('10 minutes') })
    const questions = [
      { question: 'Tea?', options: [{ label: 'Green', description: 'the mild one' }, { label: 'Black' }] },
      { question: 'When?' },
    ]
    const call = client.call('ask_user', { questions })
    const { id, type, payload } = await host.take()
    expect({ type, payload }).toEqual({ type: 'ask_user', payload: { questions } })
    host.answer(id, {
      answers: [
        { question: 'Tea?', answer: 'Black', option: 2, by: 'Ann' },
        { question: 'When?', answer: 'soon', option: null, by: 'Bo' },
      ],
    })
    const { text, facts } = await call
    expect(text).toContain('To “Tea?” the answer is “Black” (from Ann).')
    expect(facts).toEqual({
      request_id: id,
      answers: [
        { question: 'Tea?', answer: 'Black', option: 2, by: 'Ann' },
        { question: 'When?', answer: 'soon', by: 'Bo' },
      ],
    })
  })
})

test('an answer that a client would hang up on is told as too large', async () => {
  const host = playHost()
  host.offer([recall, lent])
  const client = await connect({ HATCHWAY_IPC: host.ipc })
  await client.tools()
  const long = 'ä'.repeat(4_500_000)
  const answers = [
    ['recall', { found: [long] }, 'answer_too_large'],
    ['lent', { content: [{ type: 'text', text: long }] }, 'answer_too_large'],
  ] as const
  for (const [tool, result, code] of answers) {
    const call = client.call(tool, { key: 'x' })
    host.answer((await host.take()).id, result)
    expect((await call).failure).toMatchObject({ code })
  }
  const nested = client.call('recall', { key: 'x' })
  const { id } = await host.take()
  const endless = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  post(host.responses, `{"version":1,"id":"${id}","ok":true,"result":{"found":${endless}}}`, {
    name: `${id}.json`,
  })
  expect((await nested).failure).toMatchObject({ code: 'unknown_outcome' })
  const call = client.call('recall', { key: 'x' })
  host.answer((await host.take()).id, { found: ['x'.repeat(3_000_000)] })
  expect((await call).failure).toBeUndefined()
})

test('failures are told in words that fit their code', async () => {
  const host = playHost()
  host.offer([recall])
  const client = await connect({ HATCHWAY_IPC: host.ipc })
  await client.tools()
  const told = [
    ['expired', /^No answer came in time \(expired\): because$/],
    ['cancelled', /^This was taken back \(cancelled\): because$/],
    ['interrupted', /^The host was stopped while it was at this \(interrupted\): because$/],
    ['service_failed', /^The service could not do this \(service_failed\): because$/],
    ['answer_too_large', /^The answer is too large to be given \(answer_too_large\): because$/],
    ['invalid_field', /^The host refused this \(invalid_field\): because$/],
  ] as const
  for (const [code, words] of told) {
    const call = client.call('recall', {})
    const { id } = await host.take()
    host.refuse(id, code, 'because')
    const { text, failure } = await call
    expect(text).toMatch(words)
    expect(failure).toMatchObject({ code, request_id: id })
  }
})

test('a client that is kept waiting hears the last word again, and progress only rises', async () => {
  const host = playHost()
  host.offer([recall])
  const client = await connect({ HATCHWAY_IPC: host.ipc, HATCHWAY_PROGRESS_MS: '30' })
  await client.tools()
  const heard: { progress: number; message?: string | undefined; total?: number | undefined }[] = []
  const call = client.call('recall', { key: 'x' }, { onprogress: step => heard.push(step) })
  const messages = () => new Set(heard.map(({ message }) => message))
  const { id } = await host.take()
  await until(() => heard.length > 1)
  expect(heard.at(-1)?.message).toMatch(/^waiting for the host, /)
  // less than the seconds that were waited, then the same again, then less, then a leap
  for (const [progress, message] of [
    [0.25, 'begun'],
    [0.25, 'still'],
    [0.1, 'back'],
    [2_000_000_000, 'leap'],
  ] as const) {
    host.progress(id, { progress, total: 5_000_000_000, message })
    await until(() => messages().has(message))
    const before = heard.length
    await until(() => heard.length > before + 1)
    expect(heard.at(-1)).toMatchObject({ message, total: 5_000_000_000 })
  }
  expect(heard.find(({ message }) => message === 'begun')?.progress).toBe(0.25)
  expect(heard.find(({ message }) => message === 'leap')?.progress).toBe(2_000_000_000)
  host.answer(id, { found: [] })
  await call
  for (const [i, { progress }] of heard.entries()) {
    expect(progress).toBeGreaterThan(heard[i - 1]?.progress ?? 0)
  }
})

describe('what a list cannot do', () => {
  test('take the name of a tool of ours, offered to this group or not, or one twice', async () => {
    const host = playHost()
    const names = ['send_message', 'register_group', 'ask_user', 'twice', 'twice', 'a:b', 'a_b', 'fine']
    host.offer(names.map(name => listing(name)))
    const client = await connect({ HATCHWAY_IPC: host.ipc })
    expect(await added(client)).toEqual(['twice', 'a_b', 'fine'])
    const call = client.call('a_b', { key: 'x' })
    const { id, payload } = await host.take()
    expect(payload).toMatchObject({ tool: 'a:b' })
    host.answer(id, {})
    expect((await call).facts).toEqual({})
  })

  test.each(Object.entries(clients))('spoil the list by one odd tool, %s', async (_, connectClient) => {
    const host = playHost()
    host.offer([
      listing('__proto__'),
      listing('constructor'),
      listing('array', { input_schema: { type: 'array' } }),
      listing('bare', { input_schema: {} }),
      listing('loose', {
        input_schema: { properties: { any: true, none: false, __proto__: {} } },
        output_schema: { type: 'array', items: {} },
        answers: 'content',
      }),
      recall,
    ])
    const client = await connectClient({ HATCHWAY_IPC: host.ipc })
    expect(await added(client)).toEqual(['__proto__', 'constructor', 'bare', 'loose', 'recall'])
    const call = client.call('constructor', { key: 'x' })
    const { id, payload } = await host.take()
    expect(payload).toMatchObject({ tool: 'constructor' })
    host.answer(id, { yes: true })
    expect((await call).facts).toEqual({ yes: true })
  })
})

test('a file that is of no use leaves the list as it was, and is complained of', async () => {
  const odd: Record<string, (path: string) => void> = {
    'no JSON': path => writeFileSync(path, '{"tools":['),
    'another shape': path => writeFileSync(path, '{"tools":[{"name":"x"}],"questions":null}'),
    'a name that is none': path =>
      writeFileSync(path, JSON.stringify({ tools: [listing('../x')], questions: null })),
    'far too large': path => {
      writeFileSync(path, '{}')
      truncateSync(path, 1_000_000_000)
    },
    'nested without end': path =>
      writeFileSync(
        path,
        JSON.stringify({ tools: [listing('deep')], questions: null }).replace(
          '"string"',
          `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
        ),
      ),
    'a link': path => symlinkSync('/etc/passwd', path),
    'a FIFO': path => execFileSync('mkfifo', [path]),
    'a directory': path => mkdirSync(path),
  }
  const host = playHost()
  host.offer([recall])
  const server = startBare({
    HATCHWAY_IPC: host.ipc,
    HATCHWAY_EVENTS: 'off',
    HATCHWAY_SERVICES_MS: '86400000',
  })
  let asked = 1
  const list = async () => {
    const id = ++asked
    server.send({ id, method: 'tools/list' })
    const answered = () =>
      server
        .out()
        .split('\n')
        .find(line => line.includes(`"id":${id}`))
    await until(() => answered() !== undefined)
    const tools: { name: string }[] = JSON.parse(answered() ?? '').result.tools
    return tools.slice(own).map(({ name }) => name)
  }
  server.send({
    id: asked,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  })
  expect(await list()).toEqual(['recall'])

  const path = join(host.ipc, 'services.json')
  const complaints = () => server.err().split('services.json is of no use').length - 1
  for (const [what, write] of Object.entries(odd)) {
    const before = complaints()
    // A directory takes the place of nothing but a directory; nobody looks in between, with events off.
    rmSync(path, { recursive: true, force: true })
    write(path)
    expect([what, await list()]).toEqual([what, ['recall']])
    await until(() => complaints() > before)
    expect([what, await list(), complaints()]).toEqual([what, ['recall'], before + 1])
  }
  expect(server.err()).not.toContain('root:')
  rmSync(path, { recursive: true })
  host.offer([lent])
  expect(await list()).toEqual(['lent'])
})

describe('without events', () => {
  test('a change of the services is found by looking', async () => {
    const host = playHost()
    const client = await connect({
      HATCHWAY_IPC: host.ipc,
      HATCHWAY_EVENTS: 'off',
      HATCHWAY_SERVICES_MS: '20',
    })
    host.offer([recall])
    await until(() => client.toolChanges() > 0)
    expect(await added(client)).toEqual(['recall'])
  })

  test('progress is found by looking', async () => {
    const host = playHost()
    host.offer([recall])
    const client = await connect({ HATCHWAY_IPC: host.ipc, HATCHWAY_EVENTS: 'off' })
    await client.tools()
    const heard: object[] = []
    const call = client.call('recall', { key: 'x' }, { onprogress: step => heard.push(step) })
    const { id } = await host.take()
    host.progress(id, { progress: 5, message: 'half' })
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ progress: 5, message: 'half' }])
    host.answer(id, { found: [] })
    await call
  })
})

test('a directory that comes only later is found, and its services with it', async () => {
  const folder = ipcFolder()
  const ipc = join(folder, 'later')
  const client = await connect({ HATCHWAY_IPC: ipc, HATCHWAY_SERVICES_MS: '20' })
  expect(await added(client)).toEqual([])
  mkdirSync(ipc)
  playHost(ipc).offer([recall])
  await until(() => client.toolChanges() > 0)
  expect(await added(client)).toEqual(['recall'])
})

test('word of progress that is none does not harm the call', async () => {
  const host = playHost()
  host.offer([recall])
  const client = await connect({ HATCHWAY_IPC: host.ipc })
  await client.tools()
  const heard: { progress: number }[] = []
  const call = client.call('recall', { key: 'x' }, { onprogress: step => heard.push(step) })
  const { id } = await host.take()
  const path = join(host.responses, `${id}.progress.json`)
  const put = (make: (path: string) => void) => {
    const made = join(host.ipc, 'made')
    make(made)
    renameSync(made, path)
  }
  put(made => symlinkSync('/etc/passwd', made))
  put(made => execFileSync('mkfifo', [made]))
  put(made => writeFileSync(made, 'half'))
  put(made => writeFileSync(made, JSON.stringify({ version: 1, id: 'other', progress: 99 })))
  put(made => writeFileSync(made, `{"version":1,"id":"${id}","progress":1e999}`))
  put(made => {
    writeFileSync(made, '')
    truncateSync(made, 1_000_000_000)
  })
  host.progress(id, { progress: 3 })
  await until(() => heard.length > 0)
  host.answer(id, { found: [] })
  expect((await call).failure).toBeUndefined()
  expect(heard).toEqual([{ progress: 3 }])
})

describe('a service that the host does not answer for', () => {
  const waitMs = { HATCHWAY_ANSWER_TIMEOUT_MS: '400' }

  test('is taken back after its own time, and what the host does with it is unknown', async () => {
    const host = playHost()
    host.offer([listing('slow', { timeout_ms: 1500 })])
    const client = await connect({ HATCHWAY_IPC: host.ipc, ...waitMs })
    const call = client.call('slow', { key: 'x' })
    const { id } = await host.take()
    const { text, failure } = await call
    expect(failure).toMatchObject({ code: 'unknown_outcome', request_id: id })
    expect(text).toContain('no answer came within 2 seconds')
    expect(text).toContain('The host was asked to stop it')
    expect(await host.take()).toMatchObject({ type: 'cancel_request', payload: { request_id: id } })
  })

  test('is not waited for that long where the host has not even begun', async () => {
    const host = playHost()
    host.offer([], { timeout_ms: 86_400_000 })
    const client = await connect({ HATCHWAY_IPC: host.ipc, ...waitMs })
    const { failure } = await client.call('ask_user', { questions: [{ question: 'Anybody?' }] })
    expect(failure).toMatchObject({ code: 'withdrawn' })
    expect(jsonFiles(host.tasks)).toEqual([])
  })

  test('is taken back when the server ends in the middle of it', async () => {
    const host = playHost()
    host.offer([recall])
    const client = await connect({ HATCHWAY_IPC: host.ipc })
    const call = client.call('recall', { key: 'x' }).catch(() => 'gone')
    const { id } = await host.take()
    await client.close()
    await call
    expect(await host.take()).toMatchObject({ type: 'cancel_request', payload: { request_id: id } })
  })

  test('other commands that the host has taken are taken back unless they have begun', async () => {
    const host = playHost()
    const client = await connect({ HATCHWAY_IPC: host.ipc, ...waitMs })
    const call = client.call('cancel_task', { task_id: '1' })
    const { id } = await host.take()
    const { text, failure } = await call
    expect(failure).toMatchObject({ code: 'unknown_outcome' })
    expect(text).not.toContain('stop')
    // A person may still be asked about it, and nobody waits for that any more.
    expect(await host.take()).toMatchObject({
      type: 'cancel_request',
      payload: { request_id: id, unless_begun: true },
    })
  })
})

test('questions that the host would refuse are not sent', async () => {
  const host = playHost()
  host.offer([], { timeout_ms: 60_000 })
  const client = await connect({ HATCHWAY_IPC: host.ipc })
  const question = { question: 'x' }
  for (const questions of [
    [],
    Array.from({ length: 5 }, () => question),
    [{ question: '' }],
    [{ ...question, options: [{ label: '' }] }],
    [{ ...question, options: Array.from({ length: 21 }, () => ({ label: 'x' })) }],
  ]) {
    expect((await client.call('ask_user', { questions })).failure).toMatchObject({
      code: 'invalid_arguments',
    })
  }
  expect(existsSync(host.tasks) && jsonFiles(host.tasks)).toEqual([])
})
