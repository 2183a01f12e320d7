import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DialectName, dialects, type Group, type RunStart } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StoreFailure } from '../base/storage-failure.ts'
import { configSchema } from '../config.ts'
import { createSentTexts, type SentTexts } from '../sandboxes/sent-texts.ts'
import type { SandboxExit } from '../sandboxes/types.ts'
import { openStore } from '../store/sqlite.ts'
import type { AgentStore } from '../store/types.ts'
import { containerProtocols } from './container-protocols/index.ts'
import { createInputBox, inputId } from './input-box.ts'
import { createRunQueue } from './run-queue.ts'
import { startSession } from './session.ts'

/** What a stranger's container used, and what is left for the next one. The test does what the container would. */
const until = async (condition: () => boolean) => {
  while (!condition()) await sleep(5)
}

interface RigOptions {
  limits?: { idleMs: number; runMs: number; closeMs: number }
  decided?: () => Promise<void>
  notices?: () => readonly string[]
  sent?: SentTexts
  kind?: RunStart['kind']
  change?: (store: AgentStore) => Partial<AgentStore>
}
const patient = { idleMs: 60_000, runMs: 60_000, closeMs: 60_000 }

const familyOf = (dialect: DialectName): Group => ({
  folder: 'family',
  jid: 'family@chat',
  name: 'Family',
  main: false,
  dialect,
  trigger: null,
  requires_trigger: false,
  channel: null,
  added_at: new Date().toISOString(),
  last_activity: null,
})
const heard = (text: string) => ({
  group: 'family',
  jid: 'family@chat',
  channel: 'test',
  externalId: null,
  sender: 'ada',
  senderName: 'Ada',
  text,
  status: 'waiting' as const,
  createdAt: Date.now(),
})

const openRig = async (
  dialect: DialectName,
  { limits = patient, decided, notices, sent, kind = 'chat', change }: RigOptions = {},
) => {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-foreign-'))
  const store = openStore({ path: join(data, 'hatchway.db'), durability: 'process' })
  mkdirSync(join(data, 'staging'))
  for (const name of dialects[dialect].directories) mkdirSync(join(data, 'ipc', name), { recursive: true })
  const at = new Date().toISOString()
  const group = familyOf(dialect)
  store.transaction(transaction => transaction.insertGroup(group))
  const hear = (text: string) => store.agents.receive(heard(text))
  const waiting = () => store.agents.incoming({ group: 'family', status: 'waiting' })
  hear('first')
  const rows = waiting()
  const start: RunStart = {
    version: 1,
    run_id: 'r-1',
    kind,
    group: { folder: 'family', name: 'Family', jid: 'family@chat', main: false },
    assistant: 'Hatch',
    timezone: 'UTC',
    session_id: null,
    model: null,
    task: null,
    inputs: rows.map(row => ({
      id: inputId(row.id),
      text: row.text,
      sender: 'ada',
      sender_name: 'Ada',
      timestamp: at,
    })),
    context: [],
    driver: { name: 'concierge' },
    events: 'auto',
  }
  const stdout = new PassThrough()
  const exit = Promise.withResolvers<SandboxExit>()
  let messages = 0
  let launched = false
  const cutOff: string[] = []
  const end = (code: number) => {
    stdout.end()
    exit.resolve({ code, signal: null })
  }
  const session = startSession({
    start,
    group,
    rows,
    keepSession: true,
    protocol: containerProtocols[dialect],
    launch: async () => {
      launched = true
      return {
        name: 'test',
        stdin: new PassThrough().resume(),
        stdout,
        stderr: new PassThrough(),
        exited: exit.promise,
        sent,
        kill: async () => end(1),
      }
    },
    input: createInputBox({
      directory: join(data, 'ipc'),
      dialect,
      staging: join(data, 'staging'),
      owner: undefined,
      timezone: 'UTC',
      now: () => new Date(),
    }),
    store: { ...store.agents, ...change?.(store.agents) },
    run: {
      id: 'r-1',
      group: 'family',
      kind: 'chat',
      taskId: null,
      occurrenceId: null,
      sandbox: 'process',
      image: null,
      driver: 'concierge',
      sessionId: null,
      status: 'running',
      startedAt: 0,
      endedAt: null,
      result: null,
      error: null,
    },
    say: (text, author) => ({
      id: ++messages,
      group: 'family',
      jid: 'family@chat',
      author,
      kind: 'text',
      text,
      sender: null,
      speech: null,
      messageId: null,
      createdAt: 0,
    }),
    said: () => {},
    changed: () => {},
    cutOff: by => cutOff.push(by),
    hasRoom: () => {},
    giveUp: () => undefined,
    limits,
    ...(decided ? { decided } : {}),
    ...(notices ? { notices } : {}),
    log: pino({ level: 'silent' }),
    now: Date.now,
  })
  onTestFinished(async () => {
    end(0)
    await session.ended
    store.close()
    rmSync(data, { recursive: true })
  })
  await until(() => launched)
  // Its own document is the first thing it takes.
  for (const { path } of containerProtocols[dialect].files(start)) unlinkSync(join(data, 'ipc', path))
  const said = () => store.messages({ group: 'family' }).map(({ text }) => text)
  let files = 0
  return {
    session,
    end,
    said,
    cutOff,
    follow(text: string) {
      hear(text)
      session.feed(waiting())
    },
    /** takes what lies in the box, and then is busy for longer than a file system's clock ticks */
    async take(box: string) {
      for (const name of readdirSync(join(data, 'ipc', box))) unlinkSync(join(data, 'ipc', box, name))
      await sleep(30)
    },
    put: (box: string, name: string, body: object) =>
      post(join(data, 'ipc', box), JSON.stringify(body), { name, staging: join(data, 'staging') }),
    output(result: string | null) {
      const body = { type: 'result', status: 'success', result }
      return this.put('output', `${++files}.json`, body)
    },
    print: (result: string | null) =>
      stdout.write(
        `---NANOCLAW_OUTPUT_START---\n${JSON.stringify({ status: 'success', result })}\n---NANOCLAW_OUTPUT_END---\n`,
      ),
    printPlainly: (text: string) =>
      stdout.write(`\n---NANOCLAW_OUTPUT_START---\n${text}\n---NANOCLAW_OUTPUT_END---\n`),
    read: (path: string) => JSON.parse(readFileSync(join(data, 'ipc', path), 'utf8')),
    hears: (text: string) => until(() => said().includes(text)),
    statuses: () => store.agents.incoming({ group: 'family' }).map(({ status }) => status),
    exists: (path: string) => existsSync(join(data, 'ipc', path)),
  }
}

test('what Pynchy took after it had spoken is not what it spoke about', async () => {
  const rig = await openRig('pynchy')
  rig.follow('second')
  rig.output('to the first')
  rig.output(null)
  await sleep(30)
  await rig.take('input')
  await rig.hears('to the first')
  expect(rig.session.state()).toBe('working')
  rig.end(1)
  await rig.session.ended
  expect(rig.statuses()).toEqual(['used', 'waiting'])
})

test('what Pynchy took before it spoke is used when its turn is over', async () => {
  const rig = await openRig('pynchy')
  rig.output('to the first')
  rig.output(null)
  await until(() => rig.session.state() === 'idle')
  rig.follow('second')
  expect(rig.session.state()).toBe('working')
  await rig.take('input')
  rig.follow('third')
  rig.output('to the second')
  rig.output(null)
  await rig.hears('to the second')
  expect(rig.statuses()).toEqual(['used', 'used', 'given'])
  await rig.take('input')
  rig.output('to the third')
  rig.output(null)
  await until(() => rig.session.state() === 'idle')
  expect(rig.statuses()).toEqual(['used', 'used', 'used'])
})

test('its last words are heard', async () => {
  const rig = await openRig('pynchy')
  rig.output('and good bye')
  rig.end(0)
  expect(await rig.session.ended).toMatchObject({ error: undefined, result: 'and good bye' })
  expect(rig.statuses()).toEqual(['used'])
  expect(rig.exists('output/1.json')).toBe(false)
})

test.each([
  ['crashes, it is for the next run', 1, 'waiting'],
  ['ends as it should, it was used', 0, 'used'],
])('what NanoClaw took in the middle of a turn: if it %s', async (_, code, status) => {
  const rig = await openRig('nanoclaw')
  rig.follow('second')
  await rig.take('input')
  rig.print('to the first')
  await rig.hears('to the first')
  expect(rig.statuses()).toEqual(['used', 'given'])
  rig.end(code)
  await rig.session.ended
  expect(rig.statuses()).toEqual(['used', status])
})

test('what NanoClaw took in the middle of a turn is used, one by one, as it goes on speaking', async () => {
  const rig = await openRig('nanoclaw')
  rig.follow('second')
  rig.follow('third')
  rig.follow('fourth')
  await rig.take('input')
  rig.print('to the first')
  rig.print('to the second')
  await rig.hears('to the second')
  expect(rig.statuses()).toEqual(['used', 'used', 'given', 'given'])
  rig.print(null)
  await until(() => rig.statuses().every(status => status === 'used'))
})

test('NovaBot names what it answers', async () => {
  const rig = await openRig('novabot')
  rig.put('outbox', 'ready-1.json', { id: 'ready', status: 'success' })
  rig.follow('second')
  rig.follow('third')
  await rig.take('inbox')
  rig.put('outbox', `${inputId(1)}-1.json`, { id: inputId(1), status: 'success', result: 'one' })
  rig.put('outbox', `${inputId(2)}-1.json`, {
    id: inputId(2),
    status: 'success',
    result: 'two',
    newSessionId: 's',
  })
  await rig.hears('two')
  expect(rig.statuses()).toEqual(['used', 'used', 'given'])
  expect(rig.session.state()).toBe('working')
  rig.put('outbox', `${inputId(3)}-1.json`, { id: inputId(3), status: 'error', error: 'too much' })
  await until(() => rig.exists('control/shutdown.json'))
  rig.end(0)
  expect(await rig.session.ended).toMatchObject({ error: 'too much', answered: true })
  expect(rig.statuses()).toEqual(['used', 'used', 'waiting'])
})

test('one that asks to begin anew and ends in the same moment has done what it was told', async () => {
  const asked = Promise.withResolvers<void>()
  const rig = await openRig('pynchy', { decided: () => asked.promise })
  rig.end(0)
  await until(() => rig.session.state() === 'ended')
  // What it has asked for is read when it is gone already.
  rig.session.forget()
  asked.resolve()
  expect(await rig.session.ended).toMatchObject({ error: undefined })
  expect(rig.statuses()).toEqual(['used'])
})

test('one that ends without a word, and has asked for nothing, has failed', async () => {
  const rig = await openRig('pynchy', { decided: async () => {} })
  rig.end(0)
  expect(await rig.session.ended).toMatchObject({ error: 'The agent ended without an answer.' })
  expect(rig.statuses()).toEqual(['waiting'])
})

test('a host that stops does not wait for what an agent has asked for last', async () => {
  const rig = await openRig('pynchy', { decided: () => new Promise(() => {}) })
  rig.end(0)
  await until(() => rig.session.state() === 'ended')
  rig.session.kill('the host is stopping')
  expect(await rig.session.ended).toMatchObject({ answered: false })
  expect(rig.statuses()).toEqual(['waiting'])
})

test('a turn of NovaBot’s that takes too long is interrupted, people are told, and it stays', async () => {
  const rig = await openRig('novabot', { limits: { ...patient, runMs: 50 } })
  await until(() => rig.exists('control/interrupt.json'))
  rig.put('outbox', `${inputId(1)}-1.json`, { id: inputId(1), status: 'interrupted' })
  await until(() => rig.session.state() === 'idle')
  expect(rig.said()).toEqual(['I was interrupted, as that took more than 0.05 s.'])
  expect(rig.statuses()).toEqual(['used'])
  // It came too late to be seen, and must not end the next turn.
  expect(rig.exists('control/interrupt.json')).toBe(false)
})

test('people are told of an interruption, also if the store fails at first', async () => {
  let failures = 1
  const rig = await openRig('novabot', {
    limits: { ...patient, runMs: 50 },
    change: store => ({
      finishTurn(turn) {
        if (failures-- > 0) throw new StoreFailure('no space left')
        return store.finishTurn(turn)
      },
    }),
  })
  await until(() => rig.exists('control/interrupt.json'))
  rig.put('outbox', `${inputId(1)}-1.json`, { id: inputId(1), status: 'interrupted' })
  await until(() => rig.session.state() === 'idle')
  expect(rig.said()).toEqual(['I was interrupted, as that took more than 0.05 s.'])
})

test('a turn of NovaBot’s that a person stops ends by its own interruption, and the container stays', async () => {
  const rig = await openRig('novabot')
  expect(rig.session.stopTurn('Ada')).toBe(true)
  expect(rig.said()).toEqual(['Stopped by Ada.'])
  expect(rig.exists('control/interrupt.json')).toBe(true)
  rig.put('outbox', `${inputId(1)}-1.json`, { id: inputId(1), status: 'interrupted', result: 'half of it' })
  await until(() => rig.session.state() === 'idle')
  expect(rig.said()).toEqual(['Stopped by Ada.'])
  expect(rig.statuses()).toEqual(['used'])
})

test('a container that knows no interruption is ended when its turn is stopped, and gets nothing of it again', async () => {
  const rig = await openRig('nanoclaw')
  expect(rig.session.stopTurn('Ada')).toBe(true)
  expect(await rig.session.ended).toMatchObject({ error: 'Stopped by Ada.' })
  expect(rig.cutOff).toEqual(['Ada'])
  expect(rig.said()).toEqual(['Stopped by Ada.'])
  expect(rig.statuses()).toEqual(['used'])
})

test('one that does not let itself be interrupted is ended', async () => {
  const rig = await openRig('novabot', { limits: { ...patient, runMs: 50, closeMs: 50 } })
  const { error } = await rig.session.ended
  expect(error).toContain('it worked on one turn for more than 0.05 s')
  expect(rig.statuses()).toEqual(['waiting'])
})

describe('what mdclaw sends with its tool in the middle of a turn', () => {
  /** as the model says it, to whoever listens at the gateway */
  const calls = (sent: SentTexts, text: string) => {
    const { push } = sent.listen('text/event-stream; charset=utf-8')
    const tell = (event: object) => push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    const content_block = { type: 'tool_use', id: 't', name: 'mcp__mdclaw__send_message', input: {} }
    tell({ type: 'content_block_start', index: 1, content_block })
    for (const partial_json of JSON.stringify({ text }).match(/.{1,7}/gs) ?? [])
      tell({ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json } })
    tell({ type: 'content_block_stop', index: 1 })
  }

  test('is said at once, answers nothing, and its answer comes later', async () => {
    const sent = createSentTexts()
    const rig = await openRig('mdclaw', { sent, limits: { ...patient, idleMs: 0 } })
    calls(sent, 'I am looking\ninto it')
    rig.printPlainly('I am looking\ninto it')
    await rig.hears('I am looking\ninto it')
    expect(rig.session.state()).toBe('working')
    expect(rig.statuses()).toEqual(['given'])
    expect(rig.exists('input/_close')).toBe(false)
    // The same words once more are its answer: it was sent once.
    rig.printPlainly('I am looking\ninto it')
    await until(() => rig.statuses()[0] === 'used')
    await until(() => rig.exists('input/_close'))
    expect(rig.said()).toHaveLength(2)
  })

  test('is not cut off by the idle clock or by the wish to finish where nobody hears its model', async () => {
    const rig = await openRig('mdclaw', { limits: { idleMs: 0, runMs: 60_000, closeMs: 1 } })
    rig.printPlainly('I am looking into it')
    await until(() => rig.exists('input/_close'))
    await sleep(50)
    rig.printPlainly('It is done')
    await rig.hears('It is done')
    rig.end(0)
    expect(await rig.session.ended).toMatchObject({ error: undefined, result: 'It is done' })
  })

  test('does not end a task, which mdclaw ends by itself', async () => {
    const rig = await openRig('mdclaw', { kind: 'task' })
    rig.printPlainly('I am looking into it')
    await rig.hears('I am looking into it')
    expect(rig.exists('input/_close')).toBe(false)
    rig.printPlainly('It is done')
    await rig.hears('It is done')
    rig.end(0)
    expect(await rig.session.ended).toMatchObject({ error: undefined, result: 'It is done' })
  })
})

test.each(['chat', 'task'] as const)(
  'a %s in which mdclaw only prints that it failed is not done',
  async kind => {
    const rig = await openRig('mdclaw', { kind })
    rig.printPlainly('I encountered an error: Claude Code process exited with code 1')
    await until(() => rig.exists('input/_close'))
    rig.end(0)
    expect((await rig.session.ended).error).toContain('Claude Code process exited with code 1')
    expect(rig.said()).toEqual([])
    expect(rig.statuses()).toEqual(['waiting'])
  },
)

test('a follow-up says who wrote it, and first what was refused to its agent', async () => {
  const rig = await openRig('nanoclaw', { notices: () => ['A request of yours was refused: <x>.'] })
  rig.follow('second')
  expect(rig.read(`input/${inputId(2)}.json`).text).toMatch(
    /^<system_notices>\n- A request of yours was refused: &lt;x&gt;\.\n<\/system_notices>\n<context timezone="UTC" \/>\n<messages>\n<message sender="Ada" time="[^"]+">second<\/message>\n<\/messages>$/,
  )
})

/** Where a container finds what people said before it began: the notices and the text. */
const begins: readonly { dialect: DialectName; told: (stdin: string, ipc: string) => string }[] = [
  {
    dialect: 'pynchy',
    told(_, ipc) {
      const { system_notices, messages } = JSON.parse(
        readFileSync(join(ipc, 'input', 'initial.json'), 'utf8'),
      )
      return [...(system_notices ?? []), messages[0].content].join('\n')
    },
  },
  { dialect: 'nanoclaw', told: stdin => JSON.parse(stdin).prompt },
  { dialect: 'mdclaw', told: stdin => JSON.parse(stdin).prompt },
  {
    dialect: 'novabot',
    told: (_, ipc) => JSON.parse(readFileSync(join(ipc, 'inbox', `${inputId(1)}.json`), 'utf8')).prompt,
  },
]
test.each(begins)(
  '$dialect: one that is killed in its first turn is told in the next what it had already sent',
  async ({ dialect, told }) => {
    const data = mkdtempSync(join(tmpdir(), 'hatchway-foreign-'))
    const ipc = join(data, 'ipc', 'family')
    mkdirSync(join(data, 'staging'))
    for (const name of dialects[dialect].directories) mkdirSync(join(ipc, name), { recursive: true })
    const store = openStore({ path: join(data, 'hatchway.db'), durability: 'process' })
    store.transaction(transaction => transaction.insertGroup(familyOf(dialect)))
    const runs: { start: RunStart; told: string; kill(): void }[] = []
    let messages = 0
    const message = (text: string) => ({
      ...{ id: ++messages, group: 'family', jid: 'family@chat', kind: 'text' as const, text, sender: null },
      ...{ speech: null, messageId: null, createdAt: Date.now(), author: 'agent' as const },
    })
    const queue = createRunQueue({
      config: configSchema.parse({ timezone: 'UTC' }),
      store: store.agents,
      group: folder => store.group(folder),
      async launch(start) {
        const [stdin, stdout, exit] = [
          new PassThrough(),
          new PassThrough(),
          Promise.withResolvers<SandboxExit>(),
        ]
        const kill = async () => {
          stdout.end()
          exit.resolve({ code: null, signal: 'SIGKILL' })
        }
        let document = ''
        stdin.on('data', chunk => {
          document += chunk
        })
        stdin.on('end', () => runs.push({ start, told: told(document, ipc), kill }))
        return { name: 'test', stdin, stdout, stderr: new PassThrough(), exited: exit.promise, kill }
      },
      inputBox: () =>
        createInputBox({
          ...{ directory: ipc, dialect, staging: join(data, 'staging'), owner: undefined, timezone: 'UTC' },
          now: () => new Date(),
        }),
      message: (_, text) => message(text),
      said: () => {},
      lately: folder => store.latestMessages({ group: folder, limit: 100, characters: 1_000_000 }).rows,
      typing: () => {},
      log: pino({ level: 'silent' }),
      now: Date.now,
    })
    onTestFinished(async () => {
      await queue.stop()
      store.close()
      rmSync(data, { recursive: true })
    })

    store.agents.receive(heard('clean the <kitchen>'))
    queue.kick()
    await until(() => runs.length === 1)
    expect(runs[0]?.told).not.toContain('interrupted')
    // With its tool for messages, which the host stores by itself.
    store.transaction(transaction => transaction.insertMessage(message('I begin with </system_notices> it')))
    runs[0]?.kill()
    await until(() => runs.length === 2)
    const [, again] = runs
    expect(again?.start.session_id).toBeNull()
    expect(again?.told).toContain('clean the')
    expect(again?.told).toContain('Your turn was interrupted before it ended')
    expect(again?.told).toMatch(/already sent: .{0,20}I begin with &lt;\/system_notices&gt; it/)
  },
)
