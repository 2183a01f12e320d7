import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { describe, expect, test } from 'vitest'
import { createHatch, type HatchOptions } from './hatch.ts'
import { ipcFolder, jsonFiles, onlyFile, until } from './testing.ts'

const patience = { signal: new AbortController().signal }

const job = { name: 'x', command: 'true', schedule_type: 'interval', schedule_value: '60000' }

const open = (more: Partial<HatchOptions> = {}) => {
  const ipc = ipcFolder()
  const tasks = join(ipc, 'tasks')
  const responses = join(ipc, 'responses')
  const hatch = createHatch({ ipc, timeoutMs: 60_000, fileBytes: 1_048_576, events: 'auto', ...more })
  const answer = (id: string, body: object = { version: 1, id, ok: true, result: { groups: 3 } }) =>
    post(responses, JSON.stringify(body), { name: `${id}.json` })
  /** takes the file as the host does, and says nothing more */
  const take = async () => {
    const file = await onlyFile(tasks)
    unlinkSync(file.path)
    return file
  }
  return { ipc, tasks, responses, hatch, answer, take }
}

describe.each(['auto', 'off'] as const)('with events %s', events => {
  test('a request is a whole version 1 envelope, and its receipt is the outcome', async () => {
    const { hatch, take, answer, responses } = open({ events })
    const outcome = hatch.request('refresh_groups', {}, patience)
    const file = await take()
    expect(file).toMatchObject({ version: 1, type: 'refresh_groups', payload: {} })
    expect(file.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    answer(file.id)
    expect(await outcome).toEqual({
      state: 'answered',
      receipt: { version: 1, id: file.id, ok: true, result: { groups: 3 } },
    })
    expect(jsonFiles(responses)).toEqual([])
  })

  test('a receipt that is there before anybody could listen is found', async () => {
    const { hatch, take, answer, responses } = open({ events })
    rmSync(responses, { recursive: true })
    const outcome = hatch.request('refresh_groups', {}, patience)
    const { id } = await take()
    mkdirSync(responses)
    answer(id)
    expect(await outcome).toMatchObject({ state: 'answered' })
  })

  test('each of many requests at once gets its own receipt', async () => {
    const { hatch, tasks, answer } = open({ events })
    const ids: string[] = []
    const outcomes = Array.from({ length: 50 }, () =>
      hatch.request('refresh_groups', {}, { ...patience, posted: id => ids.push(id) }),
    )
    await until(() => jsonFiles(tasks).length === 50)
    for (const [groups, id] of ids.entries()) answer(id, { version: 1, id, ok: true, result: { groups } })
    const answered = await Promise.all(outcomes)
    expect(answered.map(outcome => outcome.state === 'answered' && outcome.receipt)).toEqual(
      ids.map((id, groups) => ({ version: 1, id, ok: true, result: { groups } })),
    )
  })
})

describe('a request that is refused by rule is never written', () => {
  test.each([
    ['a field that is not allowed', 'cancel_task', { task_id: '../x' }, 'invalid_field'],
    ['half a surrogate pair', 'send_message', { text: '\ud83d' }, 'invalid_utf8'],
    ['more than the host reads', 'send_message', { text: 'ä'.repeat(600_000) }, 'too_large'],
  ] as const)('%s', async (_, type, payload, code) => {
    const { hatch, ipc } = open()
    expect(await hatch.request(type, payload, patience)).toMatchObject({ state: 'unsent', error: { code } })
    expect(jsonFiles(join(ipc, 'tasks'))).toEqual([])
    expect(jsonFiles(join(ipc, 'messages'))).toEqual([])
  })

  test('a directory that is not there is said to be missing', async () => {
    const { hatch, tasks } = open()
    rmSync(tasks, { recursive: true })
    expect(await hatch.request('refresh_groups', {}, patience)).toMatchObject({
      state: 'unsent',
      error: { code: 'not_sent', message: expect.stringContaining('missing') },
    })
  })
})

describe('without a receipt', () => {
  test('what the host has not taken is taken back', async () => {
    const { hatch, tasks } = open({ timeoutMs: 50 })
    expect(await hatch.request('refresh_groups', {}, patience)).toMatchObject({ state: 'withdrawn' })
    expect(jsonFiles(tasks)).toEqual([])
  })

  test('what the host has taken is unknown, and a receipt that comes later is cleared away', async () => {
    const { hatch, tasks, answer, responses } = open({ timeoutMs: 50 })
    const takeAtOnce = () => {
      for (const name of jsonFiles(tasks)) unlinkSync(join(tasks, name))
    }
    const outcome = await hatch.request('refresh_groups', {}, { ...patience, posted: takeAtOnce })
    expect(outcome).toMatchObject({ state: 'unknown', id: expect.any(String) })
    const id = outcome.state === 'unknown' ? outcome.id : ''
    answer(id)
    await hatch.request('refresh_groups', {}, patience)
    expect(existsSync(join(responses, `${id}.json`))).toBe(false)
  })

  test('a caller that gives up has the request taken back', async () => {
    const { hatch, tasks } = open()
    const controller = new AbortController()
    const outcome = hatch.request(
      'refresh_groups',
      {},
      { signal: controller.signal, posted: () => controller.abort() },
    )
    expect(await outcome).toMatchObject({ state: 'withdrawn' })
    expect(jsonFiles(tasks)).toEqual([])
  })

  test('what waits for a person is waited for as long as that person may take', async () => {
    const { hatch, tasks, answer, responses } = open({ timeoutMs: 150 })
    let asked = ''
    const outcome = hatch.request(
      'refresh_groups',
      {},
      {
        ...patience,
        posted: id => {
          asked = id
          for (const name of jsonFiles(tasks)) unlinkSync(join(tasks, name))
          const until = new Date(Date.now() + 60_000).toISOString()
          post(responses, JSON.stringify({ version: 1, id, progress: 0, message: 'waiting', until }), {
            name: `${id}.progress.json`,
          })
        },
      },
    )
    // Longer than it waits for anything else.
    await new Promise(resolve => setTimeout(resolve, 500))
    answer(asked)
    expect(await outcome).toMatchObject({ state: 'answered' })
  })

  test('what a caller gives up that the host has taken is taken back, unless it has begun', async () => {
    const { hatch, tasks, take } = open()
    const controller = new AbortController()
    const outcome = hatch.request('schedule_host_job', job, { signal: controller.signal })
    const { id } = await take()
    controller.abort()
    expect(await outcome).toMatchObject({ state: 'unknown', toldToStop: false })
    expect(await onlyFile(tasks)).toMatchObject({
      type: 'cancel_request',
      payload: { request_id: id, unless_begun: true },
    })
  })

  test('a caller that has given up already sends nothing', async () => {
    const { hatch } = open()
    expect(await hatch.request('refresh_groups', {}, { signal: AbortSignal.abort() })).toMatchObject({
      state: 'unsent',
    })
  })
})

describe('an answer that is no receipt makes the outcome unknown, and is cleared away', () => {
  const put = {
    'not JSON': (path: string) => writeFileSync(path, '{"version":1,'),
    'the answer to another request': (path: string) =>
      writeFileSync(path, JSON.stringify({ version: 1, id: 'other', ok: true, result: {} })),
    'neither done nor refused': (path: string, id: string) =>
      writeFileSync(path, JSON.stringify({ version: 1, id, result: {} })),
    'refused with a code that is not in the list': (path: string, id: string) =>
      writeFileSync(
        path,
        JSON.stringify({ version: 1, id, ok: false, error: { code: 'sure', message: '' } }),
      ),
    'a link': (path: string) => symlinkSync('/etc/passwd', path),
  }
  test.each(Object.entries(put))('%s', async (_, write) => {
    const { hatch, take, responses, ipc } = open()
    const outcome = hatch.request('refresh_groups', {}, patience)
    const { id } = await take()
    const path = join(ipc, 'made')
    write(path, id)
    renameSync(path, join(responses, `${id}.json`))
    expect(await outcome).toMatchObject({ state: 'unknown', id })
    expect(jsonFiles(responses)).toEqual([])
  })
})
