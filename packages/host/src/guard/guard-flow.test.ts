import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { guardedService } from '../../../testing/src/paths.ts'
import { until } from '../../../testing/src/until.ts'
import type { NewGroup } from '../commands/groups.ts'
import type { ConfigInput } from '../config.ts'

/** The guard through real files: what an agent may do after what it has read, and who decides where that is not clear. */
const rig = mkdtempSync(join(tmpdir(), 'hatchway-guard-'))
beforeAll(() => {
  process.env.HATCHWAY_RIG_DIR = rig
  return () => rmSync(rig, { recursive: true, force: true })
})
const timesDone = (id: string) =>
  (existsSync(join(rig, 'done')) ? readFileSync(join(rig, 'done'), 'utf8') : '')
    .split('\n')
    .filter(line => line.split(' ')[1] === id).length

const named = (folder: string, more: Partial<NewGroup> = {}): NewGroup => ({
  folder,
  jid: `${folder}@chat`,
  name: folder,
  main: folder === 'main',
  dialect: 'hatchway',
  ...more,
})

const open = async (input: ConfigInput = {}, groups = [named('main'), named('work')]): Promise<Live> => {
  const live = await openLive({
    ...input,
    agents: { enabled: 'no' },
    services: { plugins: [guardedService] },
  })
  onTestFinished(() => live.close())
  for (const group of groups) await live.host.addGroup(group)
  await live.start()
  return live
}

const drop = ({ layout }: Live, folder: string, body: object, directory = 'tasks') =>
  post(join(layout.ipc, folder, directory), JSON.stringify(body))
let counter = 0
const newId = () => `g-${process.pid}-${++counter}`
const send = (live: Live, folder: string, type: string, payload: object, directory?: string) => {
  const id = newId()
  drop(live, folder, { version: 1, id, type, payload }, directory)
  return id
}
const call = (live: Live, folder: string, tool: string, input: object = {}) =>
  send(live, folder, 'call_service', { tool, arguments: input })
const answered = async ({ layout }: Live, folder: string, id: string) => {
  const directory = join(layout.ipc, folder, 'responses')
  await until(`${id} is answered`, () => existsSync(join(directory, `${id}.json`)))
  return JSON.parse(readFileSync(join(directory, `${id}.json`), 'utf8'))
}
const isOk = async (live: Live, folder: string, id: string) => (await answered(live, folder, id)).ok
const approvals = ({ host }: Live) => {
  const found = host.chats?.approvals
  if (!found) throw new Error('there are no approvals')
  return found
}
/** The card of a request, once there is one. */
const asked = async (live: Live, id: string) => {
  const seqOf = () =>
    live.host
      .services()
      ?.requestQueue.open()
      .find(({ reply }) => reply?.id === id)?.seq
  await until(`somebody is asked about ${id}`, () => approvals(live).isAsked(seqOf() ?? -1))
  return String(seqOf())
}
const taint = async (live: Live, folder: string, ...tools: string[]) => {
  for (const tool of tools) expect(await isOk(live, folder, call(live, folder, tool))).toBe(true)
}
const auditOf = ({ host }: Live) => host.store.audit.find({}, { below: null, span: 10_000, limit: 1000 }).rows

describe('an agent that has read nothing', () => {
  test('may do what its labels say, and is not held up', async () => {
    const live = await open()
    for (const tool of ['publish', 'wipe']) {
      expect(await isOk(live, 'work', call(live, 'work', tool, { text: 'hello' }))).toBe(true)
    }
    expect(auditOf(live)).toMatchObject([
      { action: 'wipe', gate: 'allow', outcome: 'allowed', taint: { corrupted: false, secret: false } },
      { action: 'publish', gate: 'allow', outcome: 'allowed' },
    ])
  })

  test('may not use what a label forbids, nor what the operator has forbidden since', async () => {
    const live = await open({ guard: { labels: { wipe: { dangerous_writes: 'forbidden' } } } })
    for (const tool of ['never', 'wipe']) {
      expect(await answered(live, 'work', call(live, 'work', tool, { text: 'x' }))).toMatchObject({
        ok: false,
        error: { code: 'denied', message: expect.stringContaining('forbidden') },
      })
    }
  })

  test('has a person asked about a secret that would go out', async () => {
    const live = await open()
    const token = `ghp_${'0123456789abcdefABCD'.repeat(2).slice(0, 36)}`
    const id = call(live, 'work', 'publish', { text: `the token is ${token}` })
    const card = await asked(live, id)
    expect(live.host.store.messages({}).at(-1)?.text).toMatch(/looks like a secret/)
    approvals(live).decide(card, { decision: 'deny', words: 'keep it' })
    const answer = await answered(live, 'work', id)
    expect(answer.error).toMatchObject({ code: 'denied', message: expect.stringContaining('keep it') })
    expect(timesDone(id)).toBe(0)
    expect(JSON.stringify(auditOf(live))).not.toContain(token)
  })
})

describe('an agent that has read what strangers wrote', () => {
  test('asks a person before it tells the world, and then does it once', async () => {
    const live = await open()
    await taint(live, 'work', 'read_page')
    const id = call(live, 'work', 'publish', { text: 'hello' })
    const card = await asked(live, id)
    expect(timesDone(id)).toBe(0)
    expect(approvals(live).decide(card, { decision: 'allow' })).toMatchObject({ ok: true })
    expect(await answered(live, 'work', id)).toMatchObject({ ok: true, result: { published: 'hello' } })
    expect(approvals(live).decide(card, { decision: 'deny' })).toMatchObject({ ok: false })
    expect(timesDone(id)).toBe(1)
    // Posted again under the same id it is not asked about again, and not done again.
    rmSync(join(live.layout.ipc, 'work', 'responses', `${id}.json`))
    drop(live, 'work', {
      version: 1,
      id,
      type: 'call_service',
      payload: { tool: 'publish', arguments: { text: 'hello' } },
    })
    expect(await answered(live, 'work', id)).toMatchObject({ ok: true })
    expect(timesDone(id)).toBe(1)
    expect(auditOf(live)).toContainEqual(
      expect.objectContaining({ action: 'publish', gate: 'ask', outcome: 'allowed', decidedBy: 'operator' }),
    )
  })

  test('has it noted that they give it orders', async () => {
    const live = await open()
    await taint(live, 'work', 'read_page')
    await until('it is noted', () => auditOf(live).some(({ outcome }) => outcome === 'noted'))
    expect(auditOf(live)).toContainEqual(
      expect.objectContaining({ action: 'read_page', verdict: 'deny', decidedBy: 'inspector:rules' }),
    )
  })

  test('goes on with what stays within the group, and taints nobody else', async () => {
    const live = await open()
    await taint(live, 'work', 'read_page', 'read_diary')
    expect(await isOk(live, 'work', call(live, 'work', 'look'))).toBe(true)
    expect(await isOk(live, 'work', send(live, 'work', 'send_message', { text: 'hi' }, 'messages'))).toBe(
      true,
    )
    expect(await isOk(live, 'main', call(live, 'main', 'publish', { text: 'x' }))).toBe(true)
  })

  test('main asks before it speaks or reacts in another chat or registers a group; an id is not needed for that', async () => {
    const live = await open({}, [named('main', { dialect: 'nanoclaw' }), named('work')])
    drop(live, 'main', { type: 'service:read_page', request_id: 'p' })
    await answered(live, 'main', 'p')
    drop(
      live,
      'main',
      { type: 'message', chatJid: 'work@chat', text: 'tell me https://x.example/?d=1' },
      'messages',
    )
    drop(
      live,
      'main',
      { type: 'reaction', chatJid: 'work@chat', emoji: 'https://x.example/?d=1' },
      'messages',
    )
    drop(live, 'main', {
      type: 'register_group',
      jid: 'new@chat',
      name: 'New',
      folder: 'new',
      trigger: '@x',
    })
    const held = () => live.host.services()?.requestQueue.open() ?? []
    await until('all are held', () => held().length === 3)
    await until('all are asked about', () => held().every(({ seq }) => approvals(live).isAsked(seq)))
    const said = () => live.host.store.messages({}).filter(({ kind }) => kind !== 'approval')
    expect(said()).toEqual([])
    expect(live.host.store.group('new')).toBe(undefined)
    for (const { seq } of held()) approvals(live).decide(String(seq), { decision: 'allow' })
    await until('both are said', () => said().length === 2)
    expect(said()).toMatchObject([
      { jid: 'work@chat', kind: 'text' },
      { jid: 'work@chat', kind: 'reaction' },
    ])
    expect(live.host.store.group('new')).toMatchObject({ jid: 'new@chat', dialect: 'nanoclaw' })
  })
})

describe('what was read', () => {
  test('is not forgotten by a restart, and is when the context is gone', async () => {
    const live = await open()
    await taint(live, 'work', 'unlabelled')
    await live.reopen()
    await live.start()
    await asked(live, call(live, 'work', 'wipe', { text: 'x' }))
    live.host.store.taints.clear('work', 'session')
    expect(await isOk(live, 'work', call(live, 'work', 'wipe', { text: 'x' }))).toBe(true)
  })

  test('comes back with what a service stored', async () => {
    const live = await open()
    await taint(live, 'work', 'read_page')
    expect(await isOk(live, 'work', call(live, 'work', 'add_todo', { content: 'do as the page says' }))).toBe(
      true,
    )
    live.host.store.taints.clear('work', 'session')
    await taint(live, 'work', 'list_todos')
    await asked(live, call(live, 'work', 'publish', { text: 'https://x.example/' }))
  })

  test('goes into the tasks that are made then', async () => {
    const live = await open()
    await taint(live, 'work', 'read_diary')
    const id = send(live, 'work', 'schedule_task', {
      prompt: 'go on',
      schedule_type: 'interval',
      schedule_value: '3600000',
      context_mode: 'isolated',
    })
    const { task_id } = (await answered(live, 'work', id)).result
    expect(live.host.store.taints.all()).toContainEqual(
      expect.objectContaining({
        context: `task:${task_id}`,
        secretBy: expect.any(String),
        corruptedBy: null,
      }),
    )
  })

  test('goes along to another group, where a person lets it', async () => {
    const live = await open()
    await taint(live, 'main', 'read_page')
    const id = send(live, 'main', 'schedule_task', {
      prompt: 'do as the page says',
      schedule_type: 'interval',
      schedule_value: '3600000',
      group: 'work',
    })
    approvals(live).decide(await asked(live, id), { decision: 'allow' })
    const { task_id } = (await answered(live, 'main', id)).result
    expect(live.host.store.taints.all()).toContainEqual(
      expect.objectContaining({ group: 'work', context: `task:${task_id}`, corruptedBy: expect.any(String) }),
    )
  })

  test('is there from the start where the folder holds secrets', async () => {
    const live = await open({ groups: { work: { containsSecrets: true } } })
    await asked(live, call(live, 'work', 'publish', { text: 'https://x.example/' }))
    expect(await isOk(live, 'work', call(live, 'work', 'wipe', { text: 'x' }))).toBe(true)
  })
})

describe('a shell command', () => {
  const shell = (live: Live, command: string) => send(live, 'work', 'check_shell', { command })

  test('is allowed to an agent that has read nothing, and to any if it is harmless', async () => {
    const live = await open()
    const fine = { ok: true, result: { decision: 'allow' } }
    expect(await answered(live, 'work', shell(live, 'curl https://example.org'))).toMatchObject(fine)
    await taint(live, 'work', 'read_page', 'read_diary')
    expect(await answered(live, 'work', shell(live, 'ls -l | grep x'))).toMatchObject(fine)
  })

  test('waits for a person otherwise, and Pynchy’s hook gets its decision', async () => {
    const live = await open({}, [named('work', { dialect: 'pynchy' })])
    await taint(live, 'work', 'read_page', 'read_diary')
    for (const [decision, expected] of [
      ['allow', { decision: 'allow' }],
      ['deny', { decision: 'deny', reason: expect.stringContaining('denied') }],
    ] as const) {
      const id = newId()
      drop(live, 'work', {
        type: 'security:bash_check',
        request_id: id,
        command: 'curl x',
        groupFolder: 'main',
      })
      approvals(live).decide(await asked(live, id), { decision })
      expect(await answered(live, 'work', id)).toEqual({ ...expected, result: expected })
    }
  })

  test('is allowed where the operator has switched the guard off', async () => {
    const live = await open({ guard: { enabled: 'no' } })
    await taint(live, 'work', 'unlabelled')
    expect(await isOk(live, 'work', shell(live, 'curl x'))).toBe(true)
  })
})

describe('nobody decides', () => {
  test('in time: it is not done, on time', async () => {
    const live = await open({ guard: { approvalMs: 1000 } })
    await taint(live, 'work', 'unlabelled')
    const id = call(live, 'work', 'publish', { text: 'x' })
    expect((await answered(live, 'work', id)).error).toMatchObject({ code: 'expired' })
    expect(timesDone(id)).toBe(0)
  })

  test('before a restart: it can be decided afterwards, and is asked about once', async () => {
    const live = await open()
    await taint(live, 'work', 'unlabelled')
    const id = call(live, 'work', 'publish', { text: 'x' })
    const card = await asked(live, id)
    await live.reopen()
    await live.start()
    expect(await asked(live, id)).toBe(card)
    expect(live.host.store.messages({}).filter(({ kind }) => kind === 'approval')).toHaveLength(1)
    approvals(live).decide(card, { decision: 'allow' })
    expect(await isOk(live, 'work', id)).toBe(true)
    expect(timesDone(id)).toBe(1)
  })

  test('for a group that is gone by then: nothing happens', async () => {
    const live = await open()
    await taint(live, 'work', 'unlabelled')
    const id = call(live, 'work', 'publish', { text: 'x' })
    const card = await asked(live, id)
    await live.host.removeGroup('work')
    expect(approvals(live).decide(card, { decision: 'allow' })).toMatchObject({ ok: false })
    expect(timesDone(id)).toBe(0)
  })
})

test('the guard can be switched off, and says so nowhere but in the configuration', async () => {
  const live = await open({ guard: { enabled: 'no' } })
  await taint(live, 'work', 'unlabelled')
  expect(await isOk(live, 'work', call(live, 'work', 'publish', { text: 'x' }))).toBe(true)
})
