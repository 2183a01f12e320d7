import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { configSchema } from '../config.ts'
import { openStore } from '../store/sqlite.ts'
import { type AgentsOptions, createAgents } from './agents.ts'
import { createInputBox } from './input-box.ts'
import { createProcessSandbox } from './sandboxes/process.ts'

/**
 * Real processes that behave as the runner does, well or badly, on a real store and real directories. What they do is
 * decided by what they are told: `echo`, `slow`, `crash`, …
 */
const agent = String.raw`
const fs = require('node:fs')
const start = JSON.parse(fs.readFileSync(0, 'utf8'))
const box = process.env.BOX
const tell = event => fs.writeSync(1, '\x1e' + JSON.stringify(event) + '\n')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const names = () => fs.readdirSync(box).filter(name => name.endsWith('.json')).sort()
const turn = async (ids, texts) => {
  tell({ type: 'used', inputs: ids })
  const text = texts.join('+')
  if (text.includes('crash')) process.exit(3)
  if (text.includes('rubbish')) fs.writeSync(1, 'no event\n\x1e{"type":"approve"}\n\x1e{\n')
  if (text.includes('hang')) await sleep(1e9)
  if (text.includes('refuse')) tell({ type: 'error', message: 'I would rather not', session_id: null })
  if (text.includes('refuse')) process.exit(1)
  while (text.includes('slow') && !fs.existsSync(box + '/../go')) await sleep(5)
  tell({ type: 'result', text: 'said ' + text, session_id: 'session-' + (start.session_id ?? 'first') })
}
;(async () => {
  tell({ type: 'ready' })
  await turn(start.inputs.map(input => input.id), start.inputs.map(input => input.text))
  for (;;) {
    if (fs.existsSync(box + '/_close') && !process.env.DEAF) process.exit(0)
    const next = names()
    if (next.length === 0) { await sleep(5); continue }
    const texts = next.map(name => JSON.parse(fs.readFileSync(box + '/' + name, 'utf8')).text)
    for (const name of next) fs.unlinkSync(box + '/' + name)
    await turn(next.map(name => name.slice(0, -5)), texts)
  }
})()
`

const until = async (condition: () => boolean) => {
  while (!condition()) await sleep(5)
}

const openRig = async (
  input: Parameters<typeof configSchema.parse>[0] = {},
  environment: Record<string, string> = {},
  program = process.execPath,
) => {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-agents-'))
  const store = openStore({ path: join(data, 'hatchway.db'), durability: 'process' })
  const sandbox = createProcessSandbox({ graceMs: 50 })
  const config = { ...configSchema.parse({ timezone: 'UTC', ...(input as object) }), data }
  const typing: string[] = []
  let messages = 0
  mkdirSync(join(data, 'staging'))
  const boxOf = (folder: string) => join(data, 'ipc', folder, 'input')

  const add = async (folder: string) => {
    mkdirSync(boxOf(folder), { recursive: true })
    await store.transaction({ requests: [], taskIds: [] }, transaction =>
      transaction.insertGroup({
        folder,
        jid: `${folder}@chat`,
        name: folder,
        main: false,
        dialect: 'hatchway',
        trigger: null,
        requires_trigger: false,
        channel: null,
        added_at: new Date().toISOString(),
        last_activity: null,
      }),
    )
  }
  const open = (more: Partial<AgentsOptions> = {}) =>
    createAgents({
      config,
      store: store.agents,
      group: folder => store.group(folder),
      sandboxName: sandbox.name,
      launch: start =>
        sandbox.start({
          installation: 'test',
          runId: start.run_id,
          group: start.group,
          command: [program, '-e', agent],
          workingDirectory: data,
          environment: { PATH: process.env.PATH ?? '', BOX: boxOf(start.group.folder), ...environment },
          mounts: [],
          image: undefined,
          user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
          limits: { memoryMb: 512, processes: 64, cpus: 1, temporaryMb: 16 },
        }),
      inputBox: group =>
        createInputBox({
          directory: join(data, 'ipc', group.folder),
          dialect: group.dialect,
          staging: join(data, 'staging'),
          owner: undefined,
          now: () => new Date(),
        }),
      message: (group, text) => ({
        id: ++messages,
        group: group.folder,
        jid: group.jid,
        kind: 'text',
        text,
        sender: null,
        speech: null,
        messageId: null,
        createdAt: Date.now(),
      }),
      said: () => {},
      typing: (jid, on) => typing.push(`${jid} ${on}`),
      log: pino({ level: 'silent' }),
      now: Date.now,
      ...more,
    })
  let agents = open()
  const say = (folder: string, text: string) => {
    store.agents.receive({
      group: folder,
      jid: `${folder}@chat`,
      channel: 'test',
      externalId: null,
      sender: 'ada',
      senderName: 'Ada',
      text,
      status: 'waiting',
      createdAt: Date.now(),
    })
    agents.kick()
  }
  const said = (folder: string) => store.messages({ group: folder }).map(({ text }) => text)
  await add('family')
  onTestFinished(async () => {
    await agents.stop()
    store.close()
    rmSync(data, { recursive: true })
  })
  return {
    store,
    data,
    boxOf,
    typing,
    add,
    say,
    said,
    agents: () => agents,
    hears: (folder: string, ...texts: string[]) =>
      until(() => texts.every(text => said(folder).includes(text))),
    runs: () => store.agents.runs({}),
    /** lets what is slow go on */
    release: (folder: string) => writeFileSync(join(boxOf(folder), '..', 'go'), ''),
    async restart() {
      await agents.stop()
      agents = open()
      agents.kick()
    },
  }
}

const task = (folder: string, change: Partial<Task> = {}): Task => ({
  id: '1',
  group: folder,
  jid: `${folder}@chat`,
  created_by: folder,
  prompt: 'tick',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '60000',
  timezone: 'UTC',
  context_mode: 'group',
  status: 'active',
  next_run: new Date().toISOString(),
  last_run: null,
  last_result: null,
  created_at: new Date().toISOString(),
  ...change,
})
const occurrence = (id: string) => ({
  id,
  taskId: '1',
  group: 'family',
  dueAt: 0,
  manual: false,
  status: 'claimed' as const,
  runId: null,
  claimedAt: 0,
  startedAt: null,
  endedAt: null,
  result: null,
  error: null,
})

test('a message is answered, and the answer is stored with what it used', async () => {
  const rig = await openRig()
  rig.say('family', 'hello')
  await rig.hears('family', 'said hello')
  expect(rig.store.agents.incoming({ group: 'family' })).toMatchObject([{ text: 'hello', status: 'used' }])
  expect(rig.store.agents.session('family')).toBe('session-first')
  const [run] = rig.runs()
  expect(run).toMatchObject({ kind: 'chat', status: 'running', sandbox: 'process' })
  expect(rig.store.agents.steps(run?.id ?? '').map(({ kind }) => kind)).toEqual(['input', 'result'])
  expect(rig.typing).toEqual(['family@chat true', 'family@chat false'])
})

test('follow-ups go into the session that runs, in order, in the middle of a turn, too', async () => {
  const rig = await openRig()
  rig.say('family', 'slow')
  await until(() => rig.agents().running().length === 1)
  rig.say('family', 'first')
  rig.say('family', 'second')
  await until(() => readdirSync(rig.boxOf('family')).filter(name => name.endsWith('.json')).length === 2)
  rig.release('family')
  await rig.hears('family', 'said first+second')
  rig.say('family', 'later')
  await rig.hears('family', 'said later')
  expect(rig.said('family')).toEqual(['said slow', 'said first+second', 'said later'])
  expect(rig.runs()).toHaveLength(1)
  expect(rig.store.agents.incoming({ group: 'family', status: 'used' })).toHaveLength(4)
  expect(readdirSync(rig.boxOf('family'))).toEqual([])
})

test('an idle session is asked to finish, and the next message finds a new one that goes on where it was', async () => {
  const rig = await openRig({ agents: { idleMs: 0 } })
  rig.say('family', 'one')
  await until(() => rig.runs()[0]?.status === 'done')
  rig.say('family', 'two')
  await until(() => rig.runs()[1]?.status === 'done')
  expect(rig.said('family')).toEqual(['said one', 'said two'])
  expect(rig.store.agents.session('family')).toBe('session-session-first')
  expect(existsSync(join(rig.boxOf('family'), '_close'))).toBe(false)
})

test('one that does not finish when it is asked to is ended, and what came meanwhile is answered by the next', async () => {
  const rig = await openRig({ agents: { idleMs: 0, closeMs: 200 } }, { DEAF: '1' })
  rig.say('family', 'one')
  await until(() => rig.runs()[0]?.status === 'failed')
  expect(rig.runs()[0]?.error).toContain('did not finish')
  rig.say('family', 'two')
  await rig.hears('family', 'said two')
})

test('a session that crashes is tried again twice, and then people are told', async () => {
  const rig = await openRig()
  rig.say('family', 'crash')
  await until(() => rig.said('family').length === 1)
  expect(rig.runs().map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
  expect(rig.said('family')[0]).toContain('could not answer')
  expect(rig.store.agents.incoming({ group: 'family' })).toMatchObject([{ status: 'used' }])
  await until(() => rig.agents().running().length === 0)
  rig.say('family', 'hello')
  await rig.hears('family', 'said hello')
})

test('what the agent gives as a reason is what people hear', async () => {
  const rig = await openRig()
  rig.say('family', 'refuse')
  await until(() => rig.said('family').length === 1)
  expect(rig.said('family')[0]).toContain('I would rather not')
})

test('a turn that takes too long is ended', async () => {
  const rig = await openRig({ agents: { runMs: 1000 } })
  rig.say('family', 'hang')
  await until(() => rig.runs()[0]?.status === 'failed')
  expect(rig.runs()[0]?.error).toContain('worked on one turn')
})

test('rubbish on standard output is noted and harms nothing', async () => {
  const rig = await openRig()
  rig.say('family', 'rubbish')
  await rig.hears('family', 'said rubbish')
  const steps = rig.store.agents.steps(rig.runs()[0]?.id ?? '')
  expect(steps.filter(({ kind }) => kind === 'notice')).toHaveLength(3)
})

test('a program that is not there is told in words', async () => {
  const rig = await openRig({}, {}, join(tmpdir(), 'no', 'such', 'program'))
  rig.say('family', 'hello')
  await until(() => rig.said('family').length === 1)
  expect(rig.said('family')[0]).toContain('could not be started')
})

test('stopping ends the session, and what it had not answered is answered after the next start, once', async () => {
  const rig = await openRig()
  rig.say('family', 'slow')
  await until(() => rig.agents().running().length === 1)
  await rig.restart()
  rig.release('family')
  await rig.hears('family', 'said slow')
  expect(rig.said('family')).toEqual(['said slow'])
  expect(rig.store.agents.incoming({ group: 'family' })).toMatchObject([{ text: 'slow', status: 'used' }])
  expect(rig.runs()[0]).toMatchObject({ status: 'failed' })
})

test('no more sessions run at once than may, and everyone has a turn', async () => {
  const rig = await openRig({ agents: { atOnce: 2 } })
  const folders = ['family', ...Array.from({ length: 6 }, (_, i) => `g${i}`)]
  for (const folder of folders.slice(1)) await rig.add(folder)
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, rig.agents().running().length)
  }, 1)
  for (const folder of folders) rig.say(folder, 'hello')
  await Promise.all(folders.map(folder => rig.hears(folder, 'said hello')))
  clearInterval(watch)
  expect(most).toBeLessThanOrEqual(2)
})

test('a task waits for the turn that is going on, takes the place of an idle session and hears nobody else', async () => {
  const rig = await openRig()
  rig.say('family', 'hello')
  await rig.hears('family', 'said hello')
  const begun: string[] = []
  const ended = rig.agents().runTask(occurrence('o1'), task('family'), runId => {
    begun.push(runId)
    return { ok: true, task: task('family', { prompt: 'slow task' }) }
  })
  await until(() => begun.length === 1)
  rig.say('family', 'meanwhile')
  await until(() => rig.agents().running()[0]?.kind === 'task')
  rig.release('family')
  expect(await ended).toMatchObject({ status: 'done', result: 'said slow task' })
  await rig.hears('family', 'said meanwhile')
  expect(rig.said('family')).toEqual(['said hello', 'said slow task', 'said meanwhile'])
})

test('an isolated task has a session of its own, which nobody goes on with', async () => {
  const rig = await openRig()
  const isolated = task('family', { context_mode: 'isolated' })
  await rig.agents().runTask(occurrence('o1'), isolated, () => ({ ok: true, task: isolated }))
  expect(rig.store.agents.session('family')).toBeUndefined()
  expect(rig.said('family')).toEqual(['said tick'])
})

test('a task that may no longer run when its turn comes starts nothing', async () => {
  const rig = await openRig()
  const end = await rig
    .agents()
    .runTask(occurrence('o1'), task('family'), () => ({ ok: false, reason: 'It was cancelled.' }))
  expect(end).toEqual({ status: 'skipped', result: null, error: 'It was cancelled.' })
  expect(rig.runs()).toEqual([])
})
