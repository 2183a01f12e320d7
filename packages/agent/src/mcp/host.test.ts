import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent, type Called, type Connected, clients, connect, jsonFiles, startHost } from './testing.ts'

/** Every tool against a real host, through real files. What is true is asked of the host, not of the tool. */

const hourly = { prompt: 'look outside', schedule_type: 'cron', schedule_value: '0 * * * *' }
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)

/** The facts of a call that succeeded. Both kinds of clients show the same ones. */
async function done(called: Promise<Called>): Promise<Record<string, unknown>> {
  const { text, facts, failure } = await called
  expect(failure, text).toBeUndefined()
  expect(text).toContain(JSON.stringify(facts))
  return facts ?? {}
}

async function refused(called: Promise<Called>): Promise<{ code: string; text: string }> {
  const { text, facts, failure } = await called
  expect(facts).toBeUndefined()
  const { code } = z.object({ code: z.string(), request_id: z.string() }).parse(failure)
  expect(text).toContain(`The host refused this (${code}): `)
  return { code, text }
}

const idOf = (facts: Record<string, unknown>) => z.string().parse(facts.task_id)

describe.each(Object.entries(clients))('%s', (_, connectClient) => {
  test('every tool does what it says', async () => {
    const host = await startHost()
    const main = await connectClient(host.environment('main'))

    const sent = await done(main.call('send_message', { text: 'Grüße 👋', sender: 'Scout' }))
    expect(sent).toMatchObject({ status: 'queued', message_id: expect.any(String) })
    expect(await host.ask('/messages')).toMatchObject([
      { group: 'main', jid: 'local:main', text: 'Grüße 👋', sender: 'Scout' },
    ])

    const once = await done(
      main.call('schedule_task', {
        prompt: 'stretch',
        schedule_type: 'once',
        schedule_value: `${tomorrow()}T09:30:00`,
        context_mode: 'isolated',
        target_group_jid: 'a@chat',
        script: 'echo',
        model: 'small',
      }),
    )
    expect(once).toMatchObject({
      status: 'active',
      next_run: expect.stringMatching(/T0[78]:30:00\.000Z$/),
      next_run_local: expect.stringContaining(`${tomorrow()} 09:30:00 Europe/Berlin`),
    })
    const cron = idOf(await done(main.call('schedule_task', hourly)))
    expect(await host.ask('/tasks')).toMatchObject([
      {
        id: idOf(once),
        group: 'a',
        created_by: 'main',
        prompt: 'stretch',
        context_mode: 'isolated',
        timezone: 'Europe/Berlin',
        script: 'echo',
        model: 'small',
      },
      { id: cron, group: 'main', context_mode: 'group', schedule_value: '0 * * * *' },
    ])

    expect(await done(main.call('list_tasks'))).toMatchObject({
      tasks: [
        {
          id: idOf(once),
          group: 'a',
          status: 'active',
          next_run: once.next_run,
          next_run_local: once.next_run_local,
        },
        { id: cron, group: 'main', status: 'active' },
      ],
    })

    expect(await done(main.call('pause_task', { task_id: cron }))).toMatchObject({ status: 'paused' })
    expect(await done(main.call('resume_task', { task_id: cron }))).toMatchObject({ status: 'active' })
    const update = {
      task_id: cron,
      prompt: 'look inside',
      schedule_type: 'interval',
      schedule_value: '60000',
    }
    expect(await done(main.call('update_task', update))).toMatchObject({ status: 'active' })
    expect(await host.ask('/tasks?group=main')).toMatchObject([
      { id: cron, prompt: 'look inside', schedule_type: 'interval', schedule_value: '60000' },
    ])
    const cancelled = await done(main.call('cancel_task', { task_id: cron }))
    expect(cancelled).toMatchObject({ status: 'cancelled' })
    expect(cancelled).not.toHaveProperty('next_run')
    expect(await done(main.call('list_tasks'))).toMatchObject({ tasks: [{ id: idOf(once) }] })

    const group = { jid: 'c@chat', name: 'C', folder: 'c', trigger: '@C', requiresTrigger: false }
    expect(await done(main.call('register_group', group))).toMatchObject({ jid: 'c@chat', folder: 'c' })
    expect(existsSync(join(host.data, 'ipc', 'c', 'tasks'))).toBe(true)
    expect(await done(main.call('refresh_groups'))).toMatchObject({ groups: 4 })
    const { groups } = z
      .object({ groups: z.array(z.looseObject({ folder: z.string() })) })
      .parse(await done(main.call('list_groups')))
    expect(groups.map(({ folder }) => folder).sort()).toEqual(['a', 'b', 'c', 'main'])
    expect(groups.find(({ folder }) => folder === 'c')).toMatchObject({
      trigger: '@C',
      requires_trigger: false,
    })
    expect(await done(main.call('unregister_group', { jid: 'a@chat' }))).toMatchObject({ tasks_cancelled: 1 })
    expect(await host.ask('/tasks')).toEqual([])

    // Nothing is left lying about: every answer was taken, every request too.
    for (const name of ['messages', 'tasks', 'responses']) {
      expect(jsonFiles(join(host.data, 'ipc', 'main', name))).toEqual([])
    }
    const errors = join(host.data, 'ipc', 'errors')
    expect(existsSync(errors) ? readdirSync(errors) : []).toEqual([])
  })

  test('refusals are told with the host’s code and reason, and change nothing', async () => {
    const host = await startHost()
    const main = await connectClient(host.environment('main'))
    const a = await connectClient(host.environment('a'))
    const ofMain = idOf(await done(main.call('schedule_task', hourly)))
    const schedule = (client: Connected, more: object) => client.call('schedule_task', { ...hourly, ...more })
    const before = await host.ask('/tasks')

    expect(await refused(a.call('cancel_task', { task_id: ofMain }))).toMatchObject({
      code: 'forbidden',
    })
    expect(await refused(schedule(a, { target_group_jid: 'b@chat' }))).toMatchObject({ code: 'forbidden' })
    expect(await refused(schedule(a, { target_group_jid: 'nobody@chat' }))).toMatchObject({
      code: 'forbidden',
    })
    expect(await refused(schedule(main, { target_group_jid: 'nobody@chat' }))).toMatchObject({
      code: 'not_found',
    })
    expect(await refused(main.call('resume_task', { task_id: 'none' }))).toMatchObject({ code: 'not_found' })
    for (const [schedule_type, schedule_value] of [
      ['interval', '1'],
      ['interval', '1e30'],
      ['interval', '12abc'],
      ['once', '2020-01-01T00:00:00'],
      ['once', 'tomorrow'],
      ['cron', 'hourly'],
    ]) {
      const { code } = await refused(schedule(a, { schedule_type, schedule_value }))
      expect([schedule_value, code]).toEqual([schedule_value, 'bad_schedule'])
    }
    expect(await refused(schedule(a, { timezone: 'Atlantis/Capital' }))).toMatchObject({
      code: 'bad_schedule',
    })
    const taken = { jid: 'a@chat', name: 'X', folder: 'x', trigger: '@X' }
    expect(await refused(main.call('register_group', taken))).toMatchObject({ code: 'conflict' })
    expect(await refused(main.call('unregister_group', { jid: 'local:main' }))).toMatchObject({
      code: 'forbidden',
    })

    expect(await host.ask('/tasks')).toEqual(before)
  })
})

test('a group that calls itself main sees the tools and is refused by the host all the same', async () => {
  const host = await startHost()
  const liar = await connect(host.environment('a', true))
  const group = { jid: 'c@chat', name: 'C', folder: 'c', trigger: '@C' }
  expect(await refused(liar.call('register_group', group))).toMatchObject({ code: 'forbidden' })
  expect(await refused(liar.call('refresh_groups'))).toMatchObject({ code: 'forbidden' })
  expect(await done(liar.call('list_groups'))).toMatchObject({ groups: [] })
})

test('a group sees only its own tasks, the main group all', async () => {
  const host = await startHost()
  const [main, a, b] = await Promise.all(['main', 'a', 'b'].map(folder => connect(host.environment(folder))))
  if (!main || !a || !b) throw new Error('a client is missing')
  for (const client of [a, b]) await done(client.call('schedule_task', hourly))
  expect(await done(a.call('list_tasks'))).toMatchObject({ tasks: [{ group: 'a' }] })
  expect(await done(b.call('list_tasks'))).toMatchObject({ tasks: [{ group: 'b' }] })
  expect(await done(main.call('list_tasks'))).toMatchObject({ tasks: [{ group: 'a' }, { group: 'b' }] })
})

test('one client’s calls are executed in the order they were made', async () => {
  const host = await startHost()
  const a = await connect(host.environment('a'))
  const texts = Array.from({ length: 100 }, (_, i) => `message ${i}`)
  await Promise.all(texts.map(text => done(a.call('send_message', { text }))))
  const messages = z.array(z.looseObject({ text: z.string() })).parse(await host.ask('/messages'))
  expect(messages.map(({ text }) => text)).toEqual(texts)
})

test('without events on either side everything works', async () => {
  const host = await startHost({ HATCHWAY_EVENTS: 'off' })
  const a = await connect({ ...host.environment('a'), HATCHWAY_EVENTS: 'off' })
  await done(a.call('send_message', { text: 'hello' }))
  await done(a.call('schedule_task', hourly))
  expect(await done(a.call('list_tasks'))).toMatchObject({ tasks: [{ group: 'a' }] })
})

test('what was taken back from a host that stood still is never executed, and the next call is', async () => {
  const host = await startHost()
  const a = await connect({ ...host.environment('a'), HATCHWAY_ANSWER_TIMEOUT_MS: '4000' })
  host.pause()
  expect((await a.call('send_message', { text: 'lost' })).failure).toMatchObject({ code: 'withdrawn' })
  host.resume()
  const { message_id } = await done(a.call('send_message', { text: 'kept' }))
  expect(await host.ask('/messages')).toMatchObject([{ text: 'kept', id: Number(message_id) }])
})

test('a message larger than the host reads is refused before it is sent', async () => {
  const host = await startHost()
  const a = await connect(host.environment('a'))
  const { failure } = await a.call('send_message', { text: 'x'.repeat(1_048_576) })
  expect(failure).toMatchObject({ code: 'too_large' })
  expect(await done(a.call('send_message', { text: 'x'.repeat(1_000_000) }))).toMatchObject({
    status: 'queued',
  })
})

test('files are sent along by their paths, or nothing is sent', async () => {
  const host = await startHost()
  const a = await connect(host.environment('a'))
  const folder = join(host.data, 'groups', 'a')
  mkdirSync(join(folder, 'out'))
  writeFileSync(join(folder, 'out', 'report.txt'), 'all is well')
  writeFileSync(join(host.data, 'elsewhere'), 'not yours')
  symlinkSync(join(host.data, 'elsewhere'), join(folder, 'link'))
  const attachments = ['out/report.txt', '/workspace/group/out/report.txt', join(folder, 'out', 'report.txt')]
  expect(await done(a.call('send_message', { text: 'see', attachments }))).toMatchObject({ status: 'queued' })
  const file = { name: 'report.txt', type: 'text/plain', bytes: 11 }
  expect(await host.ask('/messages')).toMatchObject([{ text: 'see', attachments: [file, file, file] }])

  for (const [path, code] of [
    ['link', 'not_a_file'],
    ['out', 'not_a_file'],
    ['missing', 'not_found'],
    ['../b/x', 'invalid_field'],
    ['/etc/passwd', 'invalid_field'],
  ] as const) {
    const told = await refused(a.call('send_message', { text: 'x', attachments: ['out/report.txt', path] }))
    expect(told.code).toBe(code)
    expect(told.text).toContain(JSON.stringify(path))
  }
  for (const none of [[], Array.from({ length: 11 }, () => 'out/report.txt')]) {
    expect((await a.call('send_message', { text: 'x', attachments: none })).failure).toMatchObject({
      code: 'invalid_arguments',
    })
  }
  expect(await host.ask('/messages')).toHaveLength(1)
})

describe('the inspector', () => {
  const inspector = fileURLToPath(import.meta.resolve('@modelcontextprotocol/inspector/package.json'))
  const inspect = (environment: Record<string, string>, ...args: string[]) =>
    new Promise<{ code: number; out: string; err: string }>(resolve => {
      const variables = Object.entries({ ...environment, TZ: 'Europe/Berlin' }).flatMap(([name, value]) => [
        '-e',
        `${name}=${value}`,
      ])
      execFile(
        process.execPath,
        [
          join(inspector, '..', 'clients', 'launcher', 'build', 'index.js'),
          '--cli',
          ...variables,
          process.execPath,
          agent,
          'mcp',
          ...args,
        ],
        (error, out, err) =>
          resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
      )
    })

  test.each(['legacy', 'modern'])('finds nothing to say with --strict, era %s', async era => {
    for (const HATCHWAY_MAIN of ['0', '1']) {
      const found = await inspect(
        { HATCHWAY_IPC: '/nowhere', HATCHWAY_MAIN },
        '--method',
        'tools/list',
        '--strict',
        '--protocol-era',
        era,
      )
      expect({ code: found.code, err: found.err }).toEqual({ code: 0, err: '' })
      expect(JSON.parse(found.out).tools).toHaveLength(HATCHWAY_MAIN === '1' ? 12 : 8)
    }
  })

  test('calls a tool, and the host has it', async () => {
    const host = await startHost()
    const { code, out } = await inspect(
      host.environment('a'),
      '--method',
      'tools/call',
      '--tool-name',
      'send_message',
      '--tool-arg',
      'text=hello',
    )
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ structuredContent: { status: 'queued' } })
    expect(await host.ask('/messages')).toMatchObject([{ group: 'a', text: 'hello' }])
  })
})
