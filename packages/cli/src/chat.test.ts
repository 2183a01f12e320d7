import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@hatchway/host'
import { loadConfig } from '@hatchway/host/config'
import { expect, onTestFinished, test, vi } from 'vitest'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
const env = { PATH: process.env.PATH, HOME: tmpdir(), TZ: 'UTC', HATCHWAY_LOG_LEVEL: 'silent', TERM: 'dumb' }
const patience = { timeout: 30_000 }

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
  return { data, host, answer, stop }
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
  expect(late.err()).toMatch(/^hatchway: No answer came within 1 s/)
})

test('says what is wrong', async () => {
  const { data, stop } = await open()
  const nobody = hatchway('chat', '--data', data, '--group', 'nobody', '--once', 'hi')
  expect(await nobody.ended).toBe(1)
  expect(nobody.err()).toBe('hatchway: No group has the folder nobody.\n')
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
  await vi.waitFor(() => expect(running.out()).toContain('Hatch is writing…'), patience)
  host.chats?.typing('web:main', false)
  running.child.stdin?.write('hello there\r')
  await answer('main', 'Hi \u001b[31mred\nand more')
  await vi.waitFor(() => expect(running.out()).toContain('│ Hi \\u001b[31mred\r\n│ and more'), patience)
  expect(host.store.agents.incoming({}).map(({ text }) => text)).toEqual(['earlier', 'hello there'])
  running.child.stdin?.write('\u0004')
  expect(await running.ended).toBe(0)
  expect(running.out()).not.toContain('│ hello there')
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
  host.chats?.reception.receive('web', { jid: 'web:main', sender: 'x', senderName: 'X', text: 'hi', at: 0 })
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
