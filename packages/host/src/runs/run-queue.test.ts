import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { StoreFailure } from '../base/storage-failure.ts'
import { configSchema } from '../config.ts'
import { createProcessSandbox } from '../sandboxes/process.ts'
import { openStore } from '../store/sqlite.ts'
import type { AgentStore } from '../store/types.ts'
import { createInputBox } from './input-box.ts'
import { createRunQueue, type RunQueueOptions } from './run-queue.ts'

/**
 * Real processes that behave as the runner does, well or badly, on a real store and real directories. What they do is
 * decided by what they are told: `echo`, `slow`, `crash`, …
 */
const agent = String.raw`
const fs = require('node:fs')
// A test run that is killed ends nobody: then it ends by itself.
const parent = process.ppid
setInterval(() => process.ppid === parent || process.exit(1), 200).unref()
const start = JSON.parse(fs.readFileSync(0, 'utf8'))
const box = process.env.BOX
const tell = event => fs.writeSync(1, '\x1e' + JSON.stringify(event) + '\n')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const names = () => fs.readdirSync(box, { withFileTypes: true }).filter(entry => entry.isFile() && entry.name.endsWith('.json')).map(entry => entry.name).sort()
const turn = async (ids, texts) => {
  const text = texts.join('+')
  if (text.includes('blurt')) { tell({ type: 'result', text: 'blurted', session_id: null }); process.exit(1) }
  tell({ type: 'used', inputs: ids })
  if (text.includes('crash')) process.exit(3)
  if (text.includes('mute')) process.exit(0)
  if (text.includes('rubbish')) fs.writeSync(1, 'no event\n\x1e{"type":"approve"}\n\x1e{\n')
  if (text.includes('hang')) await sleep(1e9)
  if (text.includes('refuse')) tell({ type: 'error', message: 'I would rather not', session_id: null })
  if (text.includes('refuse')) process.exit(1)
  if (text.includes('stumble') && !fs.existsSync(box + '/../stumbled')) {
    while (!fs.existsSync(box + '/../go')) await sleep(5)
    fs.writeFileSync(box + '/../stumbled', '')
    return tell({ type: 'error', message: 'I have stumbled', session_id: null })
  }
  if (text.includes('chatter')) for (let i = 0; i < 5000; i++) tell({ type: 'result', text: 'blah ' + i, session_id: null })
  if (text.includes('write')) {
    tell({ type: 'delta', text: 'Let me ' })
    tell({ type: 'delta', text: 'look.' })
    tell({ type: 'step', kind: 'tool_call', name: 'look', text: '{}' })
    tell({ type: 'delta', text: 'said' })
  }
  if (text.includes('steps')) for (let i = 0; i < 20000; i++) tell({ type: 'step', kind: 'text', text: 'step ' + i })
  while (text.includes('flood')) fs.writeSync(1, 'x'.repeat(1e6) + '\n')
  while (text.includes('complain')) fs.writeSync(2, 'x'.repeat(1e6) + '\n')
  if (text.includes('long id')) tell({ type: 'result', text: 'said long id', session_id: 'x'.repeat(1e6) })
  if (text.includes('farewell')) { tell({ type: 'result', text: 'y'.repeat(900000), session_id: null }); process.exit(0) }
  if (text.includes('block close')) fs.mkdirSync(box + '/_close/a/b', { recursive: true })
  if (text.includes('block input')) fs.mkdirSync(box + '/' + String(Number(ids[0]) + 1).padStart(12, '0') + '.json/a', { recursive: true })
  if (text.includes('litter')) {
    const bytes = Buffer.concat([Buffer.from(box + '/'), Buffer.from([0xff, 0xfe]), Buffer.from('.json')])
    fs.writeFileSync(bytes, 'rubbish')
    fs.mkdirSync(Buffer.concat([bytes, Buffer.from('.d')]))
    fs.symlinkSync('/etc/passwd', box + '/link.json')
    process.exit(0)
  }
  if (text.includes('ghost')) {
    const words = JSON.stringify({ type: 'result', text: 'last words', session_id: 'of the dead' })
    const program = 'trap "" PIPE; sleep 2; printf "\\036%s\\n" "$0"; touch "$1"'
    const { spawn } = require('node:child_process')
    spawn('/bin/sh', ['-c', program, words, box + '/../spoken'], { detached: true, env: {}, stdio: ['ignore', 'inherit', 'ignore'] })
    process.exit(3)
  }
  if (text.includes('half')) {
    fs.appendFileSync(box + '/../attempts', 'x')
    const attempt = fs.readFileSync(box + '/../attempts', 'utf8').length
    while (attempt < 3 && !fs.existsSync(box + '/../go' + attempt)) await sleep(5)
    if (attempt < 3) process.exit(3)
    return tell({ type: 'result', text: 'told ' + JSON.stringify(start.notices ?? []), session_id: null })
  }
  while (text.includes('slow') && !fs.existsSync(box + '/../go')) {
    await sleep(5)
    if (process.env.DEAF || !fs.existsSync(box + '/_stop')) continue
    fs.rmSync(box + '/_stop')
    tell({ type: 'delta', text: 'written after the stop' })
    tell({ type: 'result', text: 'half an answer', session_id: 'session-stopped' })
    return
  }
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
  change: (store: AgentStore, launch: RunQueueOptions['launch']) => Partial<RunQueueOptions> = () => ({}),
) => {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-agents-'))
  const store = openStore({ path: join(data, 'hatchway.db'), durability: 'process' })
  const sandbox = createProcessSandbox({ graceMs: 50 })
  const config = { ...configSchema.parse({ timezone: 'UTC', ...(input as object) }), data }
  const typing: string[] = []
  let messages = 0
  mkdirSync(join(data, 'staging'))
  const boxOf = (folder: string) => join(data, 'ipc', folder, 'input')

  const add = async (folder: string, jid = `${folder}@chat`) => {
    mkdirSync(boxOf(folder), { recursive: true })
    store.transaction(transaction =>
      transaction.insertGroup({
        folder,
        jid,
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
  const launch: RunQueueOptions['launch'] = start =>
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
    })
  const open = () =>
    createRunQueue({
      config,
      store: store.agents,
      group: folder => store.group(folder),
      launch,
      inputBox: group =>
        createInputBox({
          directory: join(data, 'ipc', group.folder),
          dialect: group.dialect,
          staging: join(data, 'staging'),
          owner: undefined,
          timezone: 'UTC',
          now: () => new Date(),
        }),
      message: (group, text, author) => ({
        id: ++messages,
        group: group.folder,
        jid: group.jid,
        author,
        kind: 'text',
        text,
        sender: null,
        speech: null,
        messageId: null,
        createdAt: Date.now(),
      }),
      said: () => {},
      lately: folder => store.latestMessages({ group: folder, limit: 100, characters: 1_000_000 }).rows,
      typing: (jid, on) => typing.push(`${jid} ${on}`),
      log: pino({ level: 'silent' }),
      now: Date.now,
      ...change(store.agents, launch),
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

/** What people would see of what an agent is writing. */
const noteWriting = (calls: string[]) => () => ({
  liveTexts: {
    grow: ({ jid }: { jid: string }, words: string) => calls.push(`${jid}: ${words}`),
    uses: ({ jid }: { jid: string }, tool: string) => calls.push(`${jid} uses ${tool}`),
    over: (folder: string) => calls.push(`${folder} is over`),
  },
})

test('what an agent writes is shown until its answer is stored, and is no answer itself', async () => {
  const calls: string[] = []
  const rig = await openRig({}, {}, undefined, noteWriting(calls))
  rig.say('family', 'write')
  await rig.hears('family', 'said write')
  const turn = ['family@chat: Let me ', 'family@chat: look.', 'family@chat uses look', 'family@chat: said']
  expect(calls).toEqual([...turn, 'family is over'])
  expect(rig.said('family')).toEqual(['said write'])
  expect(JSON.stringify(rig.store.agents.steps(rig.runs()[0]?.id ?? ''))).not.toContain('Let me')
})

test('nothing is shown of what an agent writes after it was stopped, or in a task', async () => {
  const calls: string[] = []
  const rig = await openRig({}, {}, undefined, noteWriting(calls))
  rig.say('family', 'slow')
  await until(() => rig.runs()[0]?.status === 'running' && rig.agents().running()[0]?.state === 'working')
  await until(() => rig.agents().stopTurn('family', 'Ann'))
  await until(() => rig.agents().running()[0]?.state === 'idle')
  expect(calls.filter(call => call !== 'family is over')).toEqual([])
  rig.agents().close('family')
  const end = await rig.agents().runTask(occurrence('1'), task('family', { prompt: 'write' }), () => ({
    ok: true,
    task: task('family', { prompt: 'write' }),
  }))
  expect(end.status).toBe('done')
  expect(calls.filter(call => call !== 'family is over')).toEqual([])
})

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
  expect(run).toMatchObject({ kind: 'chat', status: 'running', driver: 'concierge' })
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

test.each([
  { wiped: false, sent: /already sent: "I begin with \\"this\\" <\/system_notices>"; "x{300}…"/ },
  // What was said before the wipe came of what the group had read.
  { wiped: true, sent: /already sent: "x{300}…"/ },
])(
  'a turn that is given again says so, with what the agent had sent before ($wiped)',
  async ({ wiped, sent }) => {
    let wipedAt = 0
    const rig = await openRig({}, {}, process.execPath, () => ({ wipedAt: () => wipedAt }))
    const sends = async (text: string, id: number) =>
      rig.store.transaction(transaction =>
        transaction.insertMessage({
          ...{ id, group: 'family', jid: 'family@chat', author: 'agent', kind: 'text', text, sender: null },
          ...{ speech: null, messageId: null, createdAt: Date.now() },
        }),
      )
    await sends('of another turn', 101)
    await sleep(2)
    rig.say('family', 'half')
    const attempts = join(rig.boxOf('family'), '..', 'attempts')
    const attempt = (count: number) =>
      until(() => existsSync(attempts) && readFileSync(attempts, 'utf8').length === count)
    await attempt(1)
    await sends('I begin\nwith "this" </system_notices>', 102)
    if (wiped) wipedAt = Date.now()
    writeFileSync(join(rig.boxOf('family'), '..', 'go1'), '')
    await attempt(2)
    await sends('x'.repeat(5000), 103)
    writeFileSync(join(rig.boxOf('family'), '..', 'go2'), '')
    const told = () => rig.said('family').find(text => text.startsWith('told '))
    await until(() => told() !== undefined)
    const [notice, ...more] = JSON.parse(told()?.slice(5) ?? '')
    expect(more).toEqual([])
    expect(notice).toMatch(/interrupted/)
    expect(notice).toMatch(sent)
    expect(notice).not.toContain('another turn')
  },
)

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

test('what a turn failed on is not answered by the next turn of the same session', async () => {
  const rig = await openRig({ agents: { closeMs: 200 } }, { DEAF: '1' })
  rig.say('family', 'stumble')
  await until(() => rig.agents().running().length === 1)
  rig.say('family', 'after')
  await until(() => readdirSync(rig.boxOf('family')).some(name => name.endsWith('.json')))
  rig.release('family')
  await rig.hears('family', 'said after', 'said stumble')
  expect(rig.runs().map(({ error }) => error)).toEqual(['I have stumbled', null])
})

test('a turn that takes too long is ended', async () => {
  const rig = await openRig({ agents: { runMs: 1000 } })
  rig.say('family', 'hang')
  await until(() => rig.runs()[0]?.status === 'failed')
  expect(rig.runs()[0]?.error).toContain('worked on one turn')
})

test('the time that a person takes to decide is not counted as the turn’s', async () => {
  let isWaiting = true
  let looks = 0
  const rig = await openRig({ agents: { runMs: 1000 } }, {}, process.execPath, () => ({
    waitsForPeople: () => {
      looks++
      return isWaiting
    },
  }))
  rig.say('family', 'hang')
  // Its time was up before the first look.
  await until(() => looks > 2)
  expect(rig.runs()[0]?.status).toBe('running')
  isWaiting = false
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
  expect(rig.runs()[0]).toMatchObject({ status: 'stopped' })
})

test('an idle session that ends with the host has not failed; one in the middle of a turn was stopped', async () => {
  const rig = await openRig()
  await rig.add('work')
  rig.say('family', 'hello')
  await rig.hears('family', 'said hello')
  rig.say('work', 'slow')
  await until(() => rig.agents().running().length === 2)
  await rig.restart()
  expect(rig.runs().slice(0, 2)).toMatchObject([
    { group: 'family', status: 'done', error: null },
    { group: 'work', status: 'stopped', error: 'The agent was ended: the host is stopping.' },
  ])
})

test('a stopped turn is told at once, not passed on and not given again; the session goes on', async () => {
  const rig = await openRig()
  rig.say('family', 'slow')
  await until(() => rig.agents().running()[0]?.state === 'working')
  rig.say('family', 'and this')
  await until(() => readdirSync(rig.boxOf('family')).some(name => name.endsWith('.json')))
  expect(rig.agents().stopTurn('family', 'Ada')).toBe(true)
  expect(rig.said('family')).toEqual(['Stopped by Ada.'])
  expect(rig.typing.at(-1)).toBe('family@chat false')
  await until(() => rig.agents().running()[0]?.state === 'idle')
  rig.say('family', 'later')
  await rig.hears('family', 'said later')
  expect(rig.said('family')).toEqual(['Stopped by Ada.', 'said later'])
  expect(rig.store.agents.incoming({ status: 'used' })).toHaveLength(3)
  expect(rig.runs()).toHaveLength(1)
  expect(rig.agents().stopTurn('family', 'Ada')).toBe(false)
})

test('an agent that does not stop when asked to is ended, its next run is told, and nothing is given again', async () => {
  const cutOff: string[] = []
  const rig = await openRig({ agents: { closeMs: 100 } }, { DEAF: '1' }, process.execPath, () => ({
    cutOff: (group, _run, by) => cutOff.push(`${group.folder} by ${by}`),
  }))
  rig.say('family', 'slow')
  await until(() => rig.agents().running()[0]?.state === 'working')
  expect(rig.agents().stopTurn('family', 'Ada')).toBe(true)
  await until(() => rig.agents().running().length === 0)
  expect(cutOff).toEqual(['family by Ada'])
  expect(rig.runs()).toMatchObject([{ status: 'stopped', error: 'Stopped by Ada.' }])
  rig.say('family', 'later')
  await rig.hears('family', 'said later')
  expect(rig.said('family')).toEqual(['Stopped by Ada.', 'said later'])
})

test('a task that is stopped has failed with that as the reason', async () => {
  const rig = await openRig()
  const slow = task('family', { prompt: 'slow' })
  const end = rig.agents().runTask(occurrence('o1'), slow, () => ({ ok: true, task: slow }))
  await until(() => rig.agents().running()[0]?.state === 'working')
  expect(rig.agents().stopTurn('family', 'Ada')).toBe(true)
  expect(await end).toMatchObject({ status: 'failed', error: 'Stopped by Ada.' })
  expect(rig.runs()).toMatchObject([{ status: 'stopped' }])
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

test('a task whose agent ends without a word has failed', async () => {
  const rig = await openRig()
  const mute = task('family', { prompt: 'mute' })
  const end = await rig.agents().runTask(occurrence('o1'), mute, () => ({ ok: true, task: mute }))
  expect(end).toMatchObject({ status: 'failed', error: 'The agent ended without an answer.' })
})

test('a task that may no longer run when its turn comes starts nothing', async () => {
  const rig = await openRig()
  const end = await rig
    .agents()
    .runTask(occurrence('o1'), task('family'), () => ({ ok: false, reason: 'It was cancelled.' }))
  expect(end).toEqual({ status: 'skipped', result: null, error: 'It was cancelled.' })
  expect(rig.runs()).toEqual([])
})

/** answered, by whichever run, and not twice */
const answersOnce = async (rig: Awaited<ReturnType<typeof openRig>>, text: string) => {
  rig.say('family', text)
  await rig.hears('family', `said ${text}`)
  expect(rig.said('family').filter(said => said.includes(text))).toEqual([`said ${text}`])
}
const ends = async (rig: Awaited<ReturnType<typeof openRig>>, index = 0) => {
  await until(() => (rig.runs()[index]?.status ?? 'running') !== 'running')
  return rig.runs()[index]
}

test('follow-ups that come between a result and the close are answered once each', async () => {
  let left = 12
  const rig: Awaited<ReturnType<typeof openRig>> = await openRig(
    { agents: { idleMs: 0 } },
    {},
    process.execPath,
    () => ({
      said() {
        if (left-- > 0) rig.say('family', `number ${left}`)
      },
    }),
  )
  rig.say('family', 'hello')
  await until(() => rig.said('family').length === 13)
  await until(() => rig.agents().running().length === 0)
  expect(new Set(rig.said('family')).size).toBe(13)
  expect(rig.runs().map(({ status }) => status)).not.toContain('failed')
  expect(rig.store.agents.incoming({ status: 'used' })).toHaveLength(13)
})

test('a follow-up that comes while a session closes is answered by the next one, once', async () => {
  const rig = await openRig({ agents: { idleMs: 0, closeMs: 400 } }, { DEAF: '1' })
  rig.say('family', 'one')
  await until(() => rig.agents().running()[0]?.state === 'closing')
  rig.say('family', 'two')
  await rig.hears('family', 'said two')
  expect(rig.said('family')).toEqual(['said one', 'said two'])
  const [one, two] = rig.store.agents.incoming({ group: 'family' })
  expect([one?.runId, two?.runId]).toEqual(rig.runs().map(({ id }) => id))
})

test('what a crashed run left in its inbox is not for the next one', async () => {
  const rig = await openRig()
  writeFileSync(join(rig.boxOf('family'), '_close'), '')
  writeFileSync(join(rig.boxOf('family'), '000000000099.json'), '{"text":"stale"}')
  await answersOnce(rig, 'hello')
  rig.say('family', 'more')
  await rig.hears('family', 'said more')
  expect(rig.said('family')).toEqual(['said hello', 'said more'])
  expect(rig.runs()).toHaveLength(1)
})

test('the last words of a run that is over are not heard, and do not change the session', async () => {
  const rig = await openRig()
  rig.say('family', 'ghost')
  await until(() => rig.runs()[0]?.status === 'failed')
  rig.store.agents.setSession('family', 'new')
  await until(() => existsSync(join(rig.boxOf('family'), '..', 'spoken')))
  await sleep(50)
  expect(rig.said('family')).not.toContain('last words')
  expect(rig.store.agents.session('family')).toBe('new')
})

test('an idle time as long as the time for a turn neither ends a turn nor repeats it', async () => {
  const rig = await openRig({ agents: { idleMs: 1000, runMs: 1000 } })
  await answersOnce(rig, 'hello')
  expect(await ends(rig)).toMatchObject({ status: 'done', error: null })
  expect(rig.runs()).toHaveLength(1)
})

test('a task has its turn between two messages, however much people write', async () => {
  const rig: Awaited<ReturnType<typeof openRig>> = await openRig({}, {}, process.execPath, () => ({
    said() {
      if (rig.said('family').length === 1) rig.say('family', 'after')
    },
  }))
  rig.say('family', 'slow')
  await until(() => rig.agents().running().length === 1)
  const ended = rig
    .agents()
    .runTask(occurrence('o1'), task('family'), () => ({ ok: true, task: task('family') }))
  rig.release('family')
  expect(await ended).toMatchObject({ status: 'done' })
  await rig.hears('family', 'said after')
  expect(rig.said('family')).toEqual(['said slow', 'said tick', 'said after'])
})

test('a run that goes on talking unasked is ended, and the chat is not flooded', async () => {
  const rig = await openRig()
  rig.say('family', 'chatter')
  expect(await ends(rig)).toMatchObject({ error: expect.stringContaining('without being asked') })
  expect(rig.said('family').length).toBeLessThan(30)
  await answersOnce(rig, 'hello')
})

test('a run that says something, answers nothing and crashes is not repeated for ever', async () => {
  const rig = await openRig()
  rig.say('family', 'blurt')
  await until(() => rig.said('family').some(text => text.includes('could not answer')))
  expect(rig.said('family')).toHaveLength(4)
  await answersOnce(rig, 'hello')
  expect(rig.runs()).toHaveLength(4)
})

test.each(['flood', 'complain'])('a run that prints without end is ended: %s', async word => {
  const rig = await openRig()
  rig.say('family', word)
  expect(await ends(rig)).toMatchObject({ error: expect.stringContaining('printed more than 64 MB') })
  await until(() => rig.said('family').length === 1)
  expect(rig.said('family')[0]).toContain('printed more than 64 MB')
  await answersOnce(rig, 'hello')
  expect(rig.typing.at(-1)).toBe('family@chat false')
})

test('thousands of steps are a few commits, and no more than fit', async () => {
  let commits = 0
  const rig = await openRig({}, {}, process.execPath, store => ({
    store: {
      ...store,
      addSteps(steps) {
        commits++
        store.addSteps(steps)
      },
    },
  }))
  rig.say('family', 'steps')
  await rig.hears('family', 'said steps')
  const steps = rig.store.agents.steps(rig.runs()[0]?.id ?? '')
  expect(steps.length).toBeLessThan(5010)
  expect(steps.at(-2)).toMatchObject({ kind: 'notice', text: expect.stringContaining('too long') })
  expect(steps.at(-1)).toMatchObject({ kind: 'result' })
  expect(commits).toBeLessThan(200)
})

test('what a run says right before it exits is heard', async () => {
  const rig = await openRig()
  rig.say('family', 'farewell')
  await ends(rig)
  expect(rig.said('family').map(({ length }) => length)).toEqual([900_000])
  expect(rig.runs()).toMatchObject([{ status: 'done' }])
})

test('a transcript that cannot be written harms nothing, and is written later', async () => {
  let failures = 2
  const rig = await openRig({}, {}, process.execPath, store => ({
    store: {
      ...store,
      addSteps(steps) {
        if (failures-- > 0) throw new StoreFailure('disk full')
        store.addSteps(steps)
      },
    },
  }))
  await answersOnce(rig, 'hello')
  const kinds = () => rig.store.agents.steps(rig.runs()[0]?.id ?? '').map(({ kind }) => kind)
  await until(() => kinds().length === 2)
  expect(kinds()).toEqual(['input', 'result'])
})

test('a session id that is none is not kept', async () => {
  const rig = await openRig({ agents: { idleMs: 0 } })
  rig.say('family', 'long id')
  await ends(rig)
  expect(rig.store.agents.session('family')).toBe('session-first')
})

test('an agent that blocks the way in is ended, and the next run finds the way free', async () => {
  const rig = await openRig({ agents: { idleMs: 100, closeMs: 200 } }, { DEAF: '1' })
  await answersOnce(rig, 'block close')
  expect(await ends(rig)).toMatchObject({ error: expect.stringContaining('could not be asked to finish') })
  await answersOnce(rig, 'hello')
  // By now it can be asked, and only does not listen.
  expect(await ends(rig, 1)).toMatchObject({ error: expect.stringContaining('did not finish') })
  await until(() => readdirSync(rig.boxOf('family')).length === 0)
})

test('a follow-up that cannot be handed over is answered by the next run, and nobody else waits for it', async () => {
  const rig = await openRig()
  await rig.add('other')
  await answersOnce(rig, 'block input')
  await answersOnce(rig, 'hello')
  rig.say('other', 'hi')
  await rig.hears('other', 'said hi')
  expect(rig.runs().filter(({ group }) => group === 'family')).toHaveLength(2)
  expect(rig.store.agents.incoming({ group: 'family', status: 'used' })).toHaveLength(2)
})

test('names and links an agent leaves in its inbox keep nobody from answering', async () => {
  const rig = await openRig()
  rig.say('family', 'litter')
  await until(() => rig.said('family').length === 1)
  expect(rig.said('family')[0]).toContain('without an answer')
  await answersOnce(rig, 'hello')
})

test('an answer that the store cannot take at first is stored later, and the work is not done twice', async () => {
  let failures = 2
  const rig = await openRig({}, {}, process.execPath, store => ({
    store: {
      ...store,
      finishTurn(turn) {
        if (failures-- > 0) throw new StoreFailure('disk full')
        return store.finishTurn(turn)
      },
    },
  }))
  await answersOnce(rig, 'hello')
  expect(rig.runs()).toHaveLength(1)
})

test('the end of a run that the store cannot take at first is stored later', async () => {
  let failures = 2
  const rig = await openRig({ agents: { idleMs: 0 } }, {}, process.execPath, store => ({
    store: {
      ...store,
      giveBack(runId) {
        if (failures-- > 0) throw new StoreFailure('disk full')
        store.giveBack(runId)
      },
    },
  }))
  await answersOnce(rig, 'hello')
  expect(await ends(rig)).toMatchObject({ status: 'done' })
  await answersOnce(rig, 'again')
})

test('a fault of our own in an event ends the session and not the host', async () => {
  let faults = 1
  const rig = await openRig({}, {}, process.execPath, store => ({
    store: {
      ...store,
      finishTurn(turn) {
        if (faults-- > 0) throw new TypeError('a fault')
        return store.finishTurn(turn)
      },
    },
  }))
  await answersOnce(rig, 'hello')
  expect(rig.runs()).toMatchObject([{ error: expect.stringContaining('the host failed') }, {}])
})

test('a run that cannot be begun is begun later; a task is not lost over it, nor is anybody else', async () => {
  let failures = 2
  const rig = await openRig({}, {}, process.execPath, store => ({
    store: {
      ...store,
      insertRun(run, given) {
        if (run.group === 'family' && failures-- > 0) throw new StoreFailure('disk full')
        store.insertRun(run, given)
      },
    },
  }))
  await rig.add('other')
  let asked = 0
  const ended = rig.agents().runTask(occurrence('o1'), task('other'), () => {
    if (asked++ === 0) throw new StoreFailure('disk full')
    return { ok: true, task: task('other') }
  })
  rig.say('family', 'hello')
  rig.say('other', 'hi')
  await rig.hears('other', 'said hi')
  expect(await ended).toMatchObject({ status: 'done' })
  await rig.hears('family', 'said hello')
  expect(rig.runs()).toHaveLength(3)
})

test('a run that finds no room on the disk is begun again until it does, and nobody is told that it failed', async () => {
  let failures = 4
  const rig = await openRig({}, {}, process.execPath, (_, launch) => ({
    async launch(start, group) {
      if (failures-- > 0) throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
      return launch(start, group)
    },
  }))
  await answersOnce(rig, 'hello')
})

test.each(['fails to end it', 'never says that it has ended'])(
  'a sandbox that %s does not hold its group',
  async how => {
    const sandbox = createProcessSandbox({ graceMs: 50 })
    const rig: Awaited<ReturnType<typeof openRig>> = await openRig(
      { agents: { runMs: 1000 } },
      {},
      process.execPath,
      () => ({
        async launch(start) {
          const started = await sandbox.start({
            installation: 'test',
            runId: start.run_id,
            group: start.group,
            command: [process.execPath, '-e', agent],
            workingDirectory: rig.data,
            environment: { PATH: process.env.PATH ?? '', BOX: rig.boxOf(start.group.folder) },
            mounts: [],
            image: undefined,
            user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
            limits: { memoryMb: 512, processes: 64, cpus: 1, temporaryMb: 16 },
          })
          if (how.startsWith('never')) return { ...started, exited: new Promise(() => {}) }
          const kill = async () => {
            await started.kill()
            throw new Error('the engine does not answer')
          }
          return { ...started, kill }
        },
      }),
    )
    rig.say('family', 'hang')
    const run = await ends(rig)
    expect(run?.error).toContain('worked on one turn')
    if (how.startsWith('never')) expect(run?.error).toContain('may still be running')
    expect(rig.typing.at(-1)).toBe('family@chat false')
  },
)

test('a group that is unregistered while its agent works hears nothing more of it', async () => {
  const rig = await openRig()
  rig.say('family', 'slow')
  await until(() => rig.agents().running().length === 1)
  rig.store.transaction(transaction => transaction.deleteGroup('family'))
  await rig.add('family', 'another@chat')
  rig.agents().kick()
  expect(await ends(rig)).toMatchObject({ error: expect.stringContaining('no longer registered') })
  rig.release('family')
  await answersOnce(rig, 'hello')
  expect(rig.said('family')).toEqual(['said hello'])
  expect(rig.store.agents.session('family')).toBe('session-first')
})

test('a crowd of messages is given to a run a few at a time, and all of them are answered', async () => {
  const rig = await openRig()
  for (let i = 0; i < 230; i++) rig.say('family', `m${i}.`)
  await until(() => rig.store.agents.incoming({ status: 'used' }).length === 230)
  const texts = rig.said('family').flatMap(text => text.replace('said ', '').split('+'))
  expect(texts).toEqual(Array.from({ length: 230 }, (_, i) => `m${i}.`))
  expect(rig.said('family').every(text => text.split('+').length <= 50)).toBe(true)
})

test('the next run waits until everything that the last one asked for is decided, which is still its own', async () => {
  const undecided = new Set<string>()
  const rig = await openRig({}, {}, process.execPath, () => ({
    gone: folder => void undecided.add(folder),
    mayBegin: folder => !undecided.has(folder),
  }))
  rig.say('family', 'crash')
  await until(() => undecided.has('family'))
  const [first] = rig.runs()
  expect(rig.agents().runOf('family')?.id).toBe(first?.id)
  rig.say('family', 'hello')
  await rig.add('others')
  rig.say('others', 'hello')
  await rig.hears('others', 'said hello')
  expect(rig.store.agents.runs({ group: 'family' })).toHaveLength(1)
  undecided.delete('family')
  expect(rig.agents().runOf('family')).toBeUndefined()
  rig.agents().kick()
  await until(() => rig.store.agents.runs({ group: 'family' }).length === 2)
})

test('what is to close one run does not close the next', async () => {
  const rig = await openRig()
  rig.say('family', 'hello')
  await rig.hears('family', 'said hello')
  rig.agents().close('family', 'another run')
  expect(rig.agents().running()).toMatchObject([{ state: 'idle' }])
  rig.agents().close('family', rig.agents().runOf('family')?.id)
  await until(() => rig.agents().running().length === 0)
})
