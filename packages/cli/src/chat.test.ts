import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@hatchway/host'
import { loadConfig } from '@hatchway/host/config'
import { createNames, post } from '@hatchway/spool'
import { expect, onTestFinished, test, vi } from 'vitest'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
const env = { PATH: process.env.PATH, HOME: tmpdir(), TZ: 'UTC', HATCHWAY_LOG_LEVEL: 'silent', TERM: 'dumb' }
const patience = { timeout: 30_000 }
const freshName = createNames()

/** A daemon without agents of its own: the test answers in their place. */
async function open() {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-chat-'))
  const config = await loadConfig({ data, file: undefined })
  const daemon = await startDaemon({
    ...config,
    durability: 'process',
    logLevel: 'silent',
    agents: { ...config.agents, enabled: 'no' },
    web: { ...config.web, enabled: 'no' },
  })
  const { host } = daemon
  const { agents } = host.store
  await daemon.agentsReady
  for (const folder of ['main', 'family']) {
    await host.addGroup({
      folder,
      jid: `web:${folder}`,
      name: folder,
      main: folder === 'main',
      dialect: 'hatchway',
    })
  }
  let stopped = false
  const stop = async () => {
    if (!stopped) await daemon.stop()
    stopped = true
  }
  onTestFinished(async () => {
    await stop()
    rmSync(data, { recursive: true })
  })
  let runs = 0
  /** What waits in a group is used by a run, which says this. */
  const answer = async (group: string, text: string | null) => {
    const rows = () => agents.incoming({ group, status: 'waiting' })
    await vi.waitFor(() => expect(rows()).not.toEqual([]), patience)
    const ids = rows().map(({ id }) => id)
    const id = `run-${++runs}`
    agents.insertRun({
      id,
      group,
      kind: 'chat',
      taskId: null,
      occurrenceId: null,
      sandbox: 'bubblewrap',
      image: null,
      driver: 'concierge',
      sessionId: null,
      status: 'running',
      startedAt: Date.now(),
      endedAt: null,
      result: null,
      error: null,
    })
    agents.give(ids, id)
    agents.addSteps([
      { runId: id, at: Date.now(), kind: 'tool_call', name: 'send_message', text: 'a\u001b[2Jb\nc' },
    ])
    const message = {
      id: host.store.lastMessageId() + 1,
      group,
      jid: `web:${group}`,
      author: 'agent',
      kind: 'text',
      text: text ?? '',
      sender: null,
      speech: null,
      messageId: null,
      createdAt: Date.now(),
    } as const
    agents.finishTurn({
      runId: id,
      group,
      usedIds: ids,
      sessionId: null,
      keepSession: false,
      message: text === null ? undefined : message,
    })
    agents.updateRun(id, { status: 'done', endedAt: Date.now(), result: text })
  }
  /** What an agent asks; resolves once it is in the chat. */
  const ask = async (group: string, id: string, questions: readonly object[]) => {
    const content = JSON.stringify({ version: 1, id, type: 'ask_user', payload: { questions } })
    post(join(data, 'ipc', group, 'tasks'), content, { name: freshName() })
    await vi.waitFor(() => expect(host.store.questions.open(`web:${group}`)).toHaveLength(1), patience)
  }
  const answered = (group: string, id: string) =>
    vi.waitFor(
      () => JSON.parse(readFileSync(join(data, 'ipc', group, 'responses', `${id}.json`), 'utf8')),
      patience,
    )
  return { data, host, answer, ask, answered, stop }
}

function begin(command: string, args: readonly string[]) {
  const child: ChildProcess = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let out = ''
  let err = ''
  child.stdout?.setEncoding('utf8').on('data', text => {
    out += text
  })
  child.stderr?.setEncoding('utf8').on('data', text => {
    err += text
  })
  const ended = once(child, 'close').then(([code]): number | null => code)
  return { child, out: () => out, err: () => err, ended }
}

const hatchway = (...args: string[]) => begin(process.execPath, [bin, ...args])

test('says one thing and prints the answer, whatever is in it', async () => {
  const { data, answer, host } = await open()
  const running = hatchway('chat', '--data', data, '--once', 'hello', '--wait')
  await answer('main', 'Hi \u001b]0;gotcha\u0007there\n<internal>hm</internal>second line')
  expect(await running.ended).toBe(0)
  expect({ out: running.out(), err: running.err() }).toEqual({
    out: 'Hi \\u001b]0;gotcha\\u0007there\nsecond line\n',
    err: '',
  })
  expect(host.store.agents.incoming({})).toMatchObject([
    { group: 'main', text: 'hello', sender: 'operator', channel: 'web', status: 'used' },
  ])
})

test('says what comes from standard input, with its lines', async () => {
  const { data, answer, host } = await open()
  const running = hatchway('chat', '--data', data, '--wait', '--json')
  running.child.stdin?.end('one\ntwo\n')
  await answer('main', 'both')
  expect(await running.ended).toBe(0)
  expect(JSON.parse(running.out())).toMatchObject({ direction: 'out', text: 'both', status: 'sent' })
  expect(host.store.agents.incoming({})).toMatchObject([{ text: 'one\ntwo\n' }])
})

test('does not wait unless asked to', async () => {
  const { data, host } = await open()
  const running = hatchway('chat', '--data', data, '--group', 'family', '--once', '@hatch hello')
  expect(await running.ended).toBe(0)
  expect(running.out() + running.err()).toBe('')
  expect(host.store.agents.incoming({})).toMatchObject([{ group: 'family', status: 'waiting' }])
})

test('says when nobody was called, when nothing was said, and when no answer came', async () => {
  const { data, answer } = await open()
  const uncalled = hatchway('chat', '--data', data, '--group', 'family', '--once', 'hello', '--wait')
  expect(await uncalled.ended).toBe(0)
  expect(uncalled.err()).toContain('answers to @Hatch')

  const silent = hatchway('chat', '--data', data, '--once', 'psst', '--wait')
  await answer('main', null)
  expect(await silent.ended).toBe(0)
  expect(silent.err()).toContain('nothing to say')

  const late = hatchway('chat', '--data', data, '--once', 'hello', '--wait', '--timeout', '1')
  expect(await late.ended).toBe(3)
  expect(late.err()).toMatch(/^hatchway: No answer within 1 s/)
})

test('says what is wrong', async () => {
  const { data, stop } = await open()
  const nobody = hatchway('chat', '--data', data, '--group', 'nobody', '--once', 'hi')
  expect(await nobody.ended).toBe(1)
  expect(nobody.err()).toBe('hatchway: No group with folder nobody.\n')
  const nothing = hatchway('chat', '--data', data)
  nothing.child.stdin?.end(' \n')
  expect(await nothing.ended).toBe(64)
  await stop()
  const alone = hatchway('chat', '--data', data, '--once', 'hi')
  expect(await alone.ended).toBe(1)
  expect(alone.err()).toContain('No daemon is running')
})

test('is a conversation at a terminal, until Ctrl-D', async () => {
  const { data, answer, host } = await open()
  const first = hatchway('chat', '--data', data, '--once', 'earlier', '--wait')
  await answer('main', 'then')
  await first.ended
  const command = [process.execPath, bin, 'chat', '--data', data].join(' ')
  const running = begin('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
  await vi.waitFor(
    () => expect(running.out()).toMatch(/Operator\r\n│ earlier[\s\S]*Hatch\r\n│ then/),
    patience,
  )
  host.chats?.typing('web:main', true)
  await vi.waitFor(() => expect(running.out()).toContain('Hatch is typing…'), patience)
  host.chats?.typing('web:main', false)
  running.child.stdin?.write('hello there\r')
  await answer('main', 'Hi \u001b[31mred\nand more')
  await vi.waitFor(() => expect(running.out()).toContain('│ Hi \\u001b[31mred\r\n│ and more'), patience)
  expect(host.store.agents.incoming({}).map(({ text }) => text)).toEqual(['earlier', 'hello there'])
  running.child.stdin?.write('\u0004')
  expect(await running.ended).toBe(0)
  expect(running.out()).not.toContain('│ hello there')
})

test('files are sent and saved at a terminal', async () => {
  const { data, host, answered } = await open()
  const command = [process.execPath, bin, 'chat', '--data', data].join(' ')
  const running = begin('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
  const seen = (text: string) => vi.waitFor(() => expect(running.out()).toContain(text), patience)
  const type = (line: string) => running.child.stdin?.write(`${line}\r`)
  await seen('/attach sends a file')
  const path = join(data, 'my notes.txt')
  writeFileSync(path, 'buy milk')
  type(`/attach "${path}" read this`)
  await seen('hatchway: sent my notes.txt')
  type(`/attach ${path}`)
  await vi.waitFor(() => expect(host.store.agents.incoming({})).toHaveLength(2), patience)
  expect(host.store.agents.incoming({})).toMatchObject([
    { text: 'read this', attachments: [{ name: 'my notes.txt', type: 'text/plain', bytes: 8 }] },
    { text: '', attachments: [{ name: 'my notes.txt' }] },
  ])
  type('/attach /nowhere/at/all')
  await seen('/nowhere/at/all is not a file.')

  writeFileSync(join(data, 'groups', 'main', 'out'), 'from the agent')
  const payload = { text: 'here', attachments: [{ path: 'out', name: 'out\u001b[31m.txt' }] }
  post(
    join(data, 'ipc', 'main', 'messages'),
    JSON.stringify({ version: 1, id: 'f-1', type: 'send_message', payload }),
    { name: freshName() },
  )
  expect(await answered('main', 'f-1')).toMatchObject({ ok: true })
  await seen('│ (file 1, /save 1: out_[31m.txt, text/plain, 14 bytes)')
  const saved = join(data, 'saved.txt')
  type(`/save 1 ${saved}`)
  await seen(`hatchway: saved ${saved}`)
  expect(readFileSync(saved, 'utf8')).toBe('from the agent')
  type(`/save 1 ${saved}`)
  await seen('could not be written: EEXIST')
  type('/save 9')
  await seen('which file?')
  expect(existsSync(join(data, 'groups', 'main', 'attachments'))).toBe(true)
  running.child.stdin?.write('\u0004')
  expect(await running.ended).toBe(0)
})

const colour = { question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue\u001b[2J' }] }

test('prints what the agent asks while it waits, and a second command answers it', async () => {
  const { data, host, answer, ask, answered } = await open()
  const first = hatchway('chat', '--data', data, '--once', 'paint it', '--wait')
  await vi.waitFor(() => expect(host.store.agents.incoming({})).toHaveLength(1), patience)
  await ask('main', 'r-1', [colour])
  await vi.waitFor(() => expect(first.err()).toContain('chat --group main --once "…"'), patience)
  expect(first.out()).toContain('Which colour?\n1. Red\n2. Blue [2J\n\nAnswer with a number')

  const second = hatchway('chat', '--data', data, '--once', '2', '--wait')
  expect(await answered('main', 'r-1')).toMatchObject({
    ok: true,
    result: { answers: [{ option: 2, by: 'Operator' }] },
  })
  await answer('main', 'It is blue now.')
  expect(await first.ended).toBe(0)
  expect(await second.ended).toBe(0)
  expect(first.out()).toMatch(/in your own words\.\nIt is blue now\.\n$/)
  expect(second.out()).toBe('It is blue now.\n')

  // Nothing is open any longer, and a task of an agent's may ask, too.
  await ask('main', 'r-2', [{ question: 'Why?' }])
  const third = hatchway('chat', '--data', data, '--once', 'because', '--wait')
  expect(await third.ended).toBe(0)
  expect(third.err()).toBe('hatchway: the agent that asked has got the answer.\n')
  expect(await answered('main', 'r-2')).toMatchObject({ result: { answers: [{ answer: 'because' }] } })
})

test('a question is answered at the terminal by typing its number', async () => {
  const { data, ask, answered, host } = await open()
  const command = [process.execPath, bin, 'chat', '--data', data].join(' ')
  const running = begin('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
  await vi.waitFor(() => expect(running.out()).toContain('> '), patience)
  await ask('main', 'r-1', [colour, { question: 'Why?' }])
  await vi.waitFor(() => expect(running.out()).toContain('│ 1. Red\r\n│ 2. Blue [2J\r\n'), patience)
  running.child.stdin?.write('2\r')
  await vi.waitFor(
    () =>
      expect(running.out()).toContain(
        '│ Question 1 answered by Operator: Blue\\u001b[2J\r\n│ Question 2 is next.',
      ),
    patience,
  )
  const [asked] = host.store.questions.open()
  host.chats?.inbound.choose('web', {
    jid: 'web:main',
    id: String(asked?.seq),
    question: 2,
    answer: { text: 'so' },
    sender: 'ann',
    senderName: 'Ann',
  })
  await vi.waitFor(() => expect(running.out()).toContain('│ Question 2 answered by Ann: so'), patience)
  expect(await answered('main', 'r-1')).toMatchObject({
    result: {
      answers: [
        { option: 2, by: 'Operator' },
        { answer: 'so', by: 'Ann' },
      ],
    },
  })
  running.child.stdin?.write('\u0004')
  expect(await running.ended).toBe(0)

  // Later, it is shown as it ended.
  const later = begin('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
  await vi.waitFor(
    () => expect(later.out()).toMatch(/│ Question 2 of 2: Why\?[\s\S]*│ Question 2 answered by Ann: so\r\n/),
    patience,
  )
})

test('continues after the daemon disconnected it for being slow', async () => {
  const { data, host, answer } = await open()
  const waiting = hatchway('chat', '--data', data, '--once', 'hello', '--wait')
  await vi.waitFor(() => expect(host.store.agents.incoming({})).toHaveLength(1), patience)
  waiting.child.kill('SIGSTOP')
  // More than the host keeps for a reader, and than the socket does.
  for (let n = 0; n < 12; n++) {
    const payload = { text: 'x'.repeat(700_000) }
    const content = JSON.stringify({ version: 1, id: `r${n}`, type: 'send_message', payload })
    post(join(data, 'ipc', 'family', 'tasks'), content, { name: freshName() })
  }
  await vi.waitFor(() => expect(host.store.messages({ status: 'sent' })).toHaveLength(12), patience)
  waiting.child.kill('SIGCONT')
  // Time to find out that it was sent away; a slower machine only makes the test easier.
  await new Promise(resolve => setTimeout(resolve, 1500))
  await answer('main', 'Here I am.')
  expect(await waiting.ended).toBe(0)
  expect(waiting.out()).toContain('Here I am.')
})

test('ends when the daemon does', async () => {
  const { data, host, stop } = await open()
  const command = [process.execPath, bin, 'chat', '--data', data].join(' ')
  const running = begin('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'])
  await vi.waitFor(() => expect(running.out()).toContain('> '), patience)
  const waiting = hatchway('chat', '--data', data, '--once', 'hello', '--wait')
  await vi.waitFor(() => expect(host.store.agents.incoming({})).toHaveLength(1), patience)
  await stop()
  await running.ended
  expect(running.out()).toContain('the daemon has ended')
  expect(await waiting.ended).toBe(1)
  expect(waiting.err()).toContain('The daemon ended before there was an answer.')
})

test.each([true, false])('runs are listed and shown; with a daemon: %s', async withDaemon => {
  const { data, answer, host, stop } = await open()
  host.chats?.inbound.receive('web', { jid: 'web:main', sender: 'x', senderName: 'X', text: 'hi', at: 0 })
  await answer('main', 'done \u0007')
  if (!withDaemon) await stop()
  const run = async (...args: string[]) => {
    const running = hatchway('runs', ...args, '--data', data)
    return { code: await running.ended, out: running.out(), err: running.err() }
  }
  expect(await run('list')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^ID .*\nrun-1 .* bubblewrap +done .*done \\u0007\n$/),
  })
  expect(JSON.parse((await run('list', '--group', 'family', '--json')).out)).toEqual([])
  const { out } = await run('show', 'run')
  expect(out).toContain('agent    concierge in bubblewrap\n')
  expect(out).toMatch(/ {2}tool_call send_message\n│ a\\u001b\[2Jb\n│ c\n/)
  expect(JSON.parse((await run('show', 'run-1', '--json')).out)).toMatchObject({
    id: 'run-1',
    steps: [{ kind: 'tool_call' }],
  })
  expect(await run('show', 'nothing')).toMatchObject({ code: 2, err: expect.stringContaining('not_found') })
})
