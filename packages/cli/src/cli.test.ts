import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@hatchway/host/api'
import { loadConfig } from '@hatchway/host/config'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')

/** Nothing of whoever runs the tests: npm's variables would make a daemon follow its caller. */
const env = {
  PATH: process.env.PATH,
  HOME: tmpdir(),
  TZ: 'UTC',
  HATCHWAY_LOG_LEVEL: 'silent',
  HATCHWAY_AGENTS_ENABLED: 'no',
}

const children: ChildProcess[] = []
let data: string

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'hatchway-cli-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(data, { recursive: true })
})

interface Running {
  child: ChildProcess
  out: () => string
  err: () => string
  ended: Promise<number | null>
}

function begin(command: string, args: readonly string[], extra: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(command, args, {
    cwd: data,
    env: { ...env, ...extra },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  children.push(child)
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    err += text
  })
  const ended = once(child, 'close').then(([code]): number | null => code)
  return { child, out: () => out, err: () => err, ended }
}

const hatchway = (args: readonly string[], extra: NodeJS.ProcessEnv = {}) =>
  begin(process.execPath, [bin, ...args], extra)

async function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const running = hatchway([...args, '--data', data])
  running.child.stdin?.end()
  const code = await running.ended
  return { code, out: running.out(), err: running.err() }
}

async function json(...args: string[]): Promise<unknown> {
  const { code, out, err } = await run(...args, '--json')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out)
}

/** In a data directory that is not new: it has no group. */
async function up(...args: string[]): Promise<Running> {
  const opened = await connect(await loadConfig({ data, env: {} }))
  await opened.close()
  return ready(hatchway(['up', '--data', data, ...args]))
}

async function ready(running: Running): Promise<Running> {
  await vi.waitFor(() => expect(running.out() + running.err()).toMatch(/ready|hatchway: /), {
    timeout: 30_000,
  })
  expect(running.err()).toBe('')
  return running
}

const family = ['--folder', 'family', '--jid', 'chat:1', '--name', 'Family']

describe.each([true, false])('with a daemon: %s', withDaemon => {
  let daemon: Running | undefined
  beforeEach(async () => {
    daemon = withDaemon ? await up() : undefined
  })
  afterEach(async () => {
    daemon?.child.kill('SIGTERM')
    expect(await daemon?.ended).toBe(withDaemon ? 0 : undefined)
  })

  test('groups are added, listed and removed', async () => {
    const added = await json('groups', 'add', ...family, '--dialect', 'nanoclaw', '--trigger', '@bot')
    expect(added).toMatchObject({
      folder: 'family',
      jid: 'chat:1',
      name: 'Family',
      dialect: 'nanoclaw',
      main: false,
    })
    await run('groups', 'add', '--folder', 'boss', '--jid', 'chat:2', '--name', 'Boss', '--main')
    const groups = await json('groups', 'list')
    expect(groups).toMatchObject([{ folder: 'family' }, { folder: 'boss', main: true, dialect: 'hatchway' }])
    if (withDaemon) expect(groups).toMatchObject([{ mode: expect.stringMatching(/events|polling/) }, {}])
    expect(readdirSync(join(data, 'ipc', 'family'))).toEqual(
      expect.arrayContaining(['messages', 'tasks', 'input']),
    )

    expect((await run('groups', 'list')).out).toMatch(/^FOLDER +JID +NAME .*\nfamily +chat:1 +Family /)
    expect(await run('groups', 'add', ...family)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(/^hatchway: .*\(conflict\)\n$/),
    })
    expect(await run('groups', 'remove', 'boss')).toMatchObject({ code: 0 })
    expect(await run('groups', 'remove', '--folder', 'family')).toMatchObject({ code: 0 })
    expect(await json('groups', 'list')).toEqual([])
    expect((await run('groups', 'list')).out).toContain('No groups yet')
  })

  test('empty lists are empty arrays', async () => {
    for (const list of ['groups', 'tasks', 'messages', 'errors']) expect(await json(list, 'list')).toEqual([])
  })
})

describe('a day with a daemon', () => {
  const send = (type: string, payload: unknown, ...more: string[]) =>
    run('post', '--group', 'family', '--type', type, '--payload', JSON.stringify(payload), ...more)

  test('an agent’s file is answered, stored and shown, and nothing in it reaches the terminal raw', async () => {
    const daemon = await up()
    await run('groups', 'add', ...family)
    const text = 'hi\u001b]0;owned\u0007\u202e\nsecond line'
    const sent = await send('send_message', { text, sender: 'sub\u009bagent' }, '--wait', '--json')
    expect(sent).toMatchObject({ code: 0, err: '' })
    expect(JSON.parse(sent.out)).toMatchObject({ version: 1, ok: true })
    expect(await json('messages', 'list')).toMatchObject([
      {
        group: 'family',
        jid: 'chat:1',
        text,
        sender: 'sub\u009bagent',
        kind: 'text',
        created_at: expect.any(String),
      },
    ])
    const raw = await run('messages', 'list', '--json')
    const table = await run('messages', 'list', '--group', 'family')
    for (const { out } of [raw, table]) expect(out.replaceAll('\n', '')).not.toMatch(/[\p{C}]/u)
    expect(table.out.trimEnd().split('\n')).toHaveLength(2)
    expect(table.out).toContain('hi\\u001b]0;owned\\u0007\\u202e\\nsecond line')

    const refused = await send('send_message', { text: '' }, '--wait')
    expect(refused).toMatchObject({ code: 2, out: expect.stringContaining('invalid_field') })
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toBe(0)
    expect(await json('messages', 'list')).toHaveLength(1)
    expect(await json('errors', 'list')).toMatchObject([
      { source_group: 'family', code: 'invalid_field', kept: true },
    ])
  })

  test('refused files are shown and replayed', async () => {
    await up()
    await run('groups', 'add', ...family)
    writeFileSync(join(data, 'bad.txt'), '{"type": "\u001b[2J"')
    expect(await run('post', '--group', 'family', '--raw', join(data, 'bad.txt'))).toMatchObject({ code: 0 })
    await vi.waitFor(async () => expect(await json('errors', 'list')).toHaveLength(1), { timeout: 20_000 })
    const { out } = await run('errors', 'list')
    expect(out).toContain('invalid_json')
    const id = /^(\d+) /m.exec(out)?.[1] ?? ''
    expect((await run('errors', 'show', id)).out).not.toContain('u001b')
    expect((await run('errors', 'show', id, '--content')).out).toContain('│ {"type": "\\u001b[2J"')
    expect(await json('errors', 'replay', '--all', '--code', 'forbidden')).toEqual([])
    expect(await json('errors', 'replay', id)).toEqual([{ id, ok: true }])
    expect(await run('errors', 'replay', id)).toMatchObject({ code: 2 })
    expect(await run('errors', 'replay')).toMatchObject({ code: 64 })
    await vi.waitFor(async () => expect(await json('errors', 'list')).toHaveLength(1), { timeout: 20_000 })
    expect(await run('errors', 'replay', '--all')).toMatchObject({ code: 0 })
  })

  test('tasks are listed, paused, resumed and cancelled', async () => {
    await up()
    await run('groups', 'add', ...family)
    const task = { prompt: 'water the plants', schedule_type: 'cron', schedule_value: '0 9 * * *' }
    expect(await send('schedule_task', task, '--wait')).toMatchObject({ code: 0 })
    expect(await json('tasks', 'list', '--group', 'family')).toMatchObject([
      { group: 'family', status: 'active', prompt: 'water the plants', next_run: expect.any(String) },
    ])
    const id = /^(\S+) +family/m.exec((await run('tasks', 'list')).out)?.[1] ?? ''
    expect(await run('tasks', 'pause', id)).toMatchObject({ code: 0 })
    expect(await json('tasks', 'list')).toMatchObject([{ status: 'paused' }])
    expect(await run('tasks', 'resume', id)).toMatchObject({ code: 0 })
    expect(await run('tasks', 'cancel', id)).toMatchObject({ code: 0 })
    expect(await json('tasks', 'list')).toEqual([])
    expect(await json('tasks', 'list', '--all')).toMatchObject([{ status: 'cancelled' }])
    expect(await run('tasks', 'pause', 'nothing')).toMatchObject({
      code: 2,
      err: expect.stringContaining('not_found'),
    })
  })

  test('tail shows the past, then what happens', async () => {
    const daemon = await up()
    await run('groups', 'add', ...family)
    await send('send_message', { text: 'before' }, '--wait')
    const lines = hatchway(['tail', '--data', data])
    const objects = hatchway(['tail', '--data', data, '--json'])
    await vi.waitFor(() => expect(lines.out() && objects.out()).not.toBe(''), { timeout: 20_000 })
    await send('fly', {}, '--wait')
    await vi.waitFor(() => expect(objects.out().trimEnd().split('\n')).toHaveLength(2), { timeout: 20_000 })
    await vi.waitFor(() => expect(lines.out().trimEnd().split('\n')).toHaveLength(2), { timeout: 20_000 })
    expect(lines.out()).toMatch(/^[\d:.]{12} {2}family +send_message +ok +[\d.]+ ms\n/)
    expect(lines.out()).toMatch(/\n[\d:.]{12} {2}family +fly +refused unknown_type +[\d.]+ ms {2}\S.*\n$/)
    const [first, second] = objects
      .out()
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
    expect(first).toMatchObject({ group: 'family', type: 'send_message', outcome: { ok: true } })
    expect(second).toMatchObject({ type: 'fly', outcome: { ok: false } })
    objects.child.kill('SIGINT')
    expect(await objects.ended).toBe(0)
    daemon.child.kill('SIGTERM')
    expect(await lines.ended).toBe(0)
    expect(lines.err()).toContain('the daemon has ended')
    expect(await run('tail', '-n', '1')).toMatchObject({
      code: 0,
      out: expect.stringContaining('fly'),
      err: expect.stringContaining('no daemon is running'),
    })
  })
})

describe('up', () => {
  test('says where it runs, how to stop it and how to add a group', async () => {
    const daemon = await up()
    expect(daemon.out()).toContain(`ready on ${data}: 0 groups`)
    await vi.waitFor(() => expect(daemon.out()).toContain('groups add --data'))
    daemon.child.kill('SIGINT')
    expect(await daemon.ended).toBe(0)
    expect(daemon.out()).toContain('has stopped')
  })

  test('makes a main group in a new data directory', async () => {
    const daemon = await ready(hatchway(['up']))
    expect(daemon.out()).toContain(`ready on ${join(data, 'data')}: 1 group (watched: `)
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toBe(0)
  })

  test('makes a main group on request, once', async () => {
    for (const _ of ['first', 'again']) {
      const daemon = await up('--create-main')
      expect(daemon.out()).toContain('1 group (watched: ')
      await vi.waitFor(() => expect(daemon.out()).toContain('--group main'))
      daemon.child.kill('SIGTERM')
      expect(await daemon.ended).toBe(0)
    }
    expect(await json('groups', 'list')).toMatchObject([{ folder: 'main', jid: 'local:main', main: true }])
  })

  test('as JSON is one object', async () => {
    const daemon = await up('--json')
    expect(JSON.parse(daemon.out())).toMatchObject({ ready: true, data, groups: 0, pid: daemon.child.pid })
    daemon.child.kill('SIGTERM')
    await daemon.ended
    expect(daemon.out().trimEnd().split('\n')).toHaveLength(1)
  })

  test('is refused while another daemon runs, and names it', async () => {
    const daemon = await up()
    const second = await run('up')
    expect(second.code).toBe(1)
    expect(second.out).toBe('')
    expect(second.err).toContain(`held by a daemon, process ${daemon.child.pid}`)
  })

  test('works again after one that was killed', async () => {
    const daemon = await up()
    daemon.child.kill('SIGKILL')
    await daemon.ended
    const next = await up()
    expect(await json('groups', 'list')).toEqual([])
    next.child.kill('SIGTERM')
    expect(await next.ended).toBe(0)
  })

  test('continues when nobody reads its output', async () => {
    const daemon = await up()
    daemon.child.stdout?.destroy()
    await run('groups', 'add', ...family)
    expect(await json('groups', 'list')).toMatchObject([{ mode: expect.any(String) }])
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toBe(0)
  })

  test('ends with the shell that npm put around it', async () => {
    const shell = begin('/bin/sh', ['-c', `"${process.execPath}" "${bin}" up --data "${data}"; true`], {
      npm_lifecycle_event: 'npx',
    })
    await ready(shell)
    shell.child.kill('SIGTERM')
    await shell.ended
    await vi.waitFor(() => expect(readdirSync(join(data, 'state'))).not.toContain('daemon.json'), {
      timeout: 20_000,
    })
  })

  test('ends with the older Node that handed over to it', async () => {
    const older =
      'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})'
    const first = begin(process.execPath, ['--import', older, bin, 'up', '--data', data])
    await ready(first)
    const lockOwner = readFileSync(join(data, 'state', 'daemon.json'), 'utf8')
    expect(lockOwner).not.toContain(`"pid": ${first.child.pid},`)
    first.child.kill('SIGTERM')
    expect(await first.ended).toBe(0)
    const second = begin(process.execPath, ['--import', older, bin, 'up', '--data', data])
    await ready(second)
    second.child.kill('SIGKILL')
    await vi.waitFor(() => expect(readdirSync(join(data, 'state'))).not.toContain('daemon.json'), {
      timeout: 20_000,
    })
  })
})

describe('post', () => {
  test('without a daemon leaves the file and reports that no answer came', async () => {
    await run('groups', 'add', ...family)
    const posted = await run('post', '--group', 'family', '--type', 'refresh_groups', '--wait', '0.1')
    expect(posted).toMatchObject({ code: 3, out: '', err: expect.stringContaining('Is a daemon running') })
    const [file = ''] = readdirSync(join(data, 'ipc', 'family', 'tasks')).filter(name =>
      name.endsWith('.json'),
    )
    expect(JSON.parse(readFileSync(join(data, 'ipc', 'family', 'tasks', file), 'utf8'))).toMatchObject({
      version: 1,
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      type: 'refresh_groups',
      payload: {},
      sent_at: expect.any(String),
    })
    expect(readdirSync(join(data, 'ipc', 'family', 'tasks')).filter(name => !name.endsWith('.json'))).toEqual(
      [],
    )
  })

  test('takes the payload from standard input', async () => {
    await run('groups', 'add', ...family)
    const running = hatchway([
      'post',
      '--data',
      data,
      '--group',
      'family',
      '--type',
      'x',
      '--payload',
      '-',
      '--dir',
      'messages',
      '--json',
    ])
    running.child.stdin?.end('{"a":1}')
    expect(await running.ended).toBe(0)
    const { file } = JSON.parse(running.out())
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ payload: { a: 1 } })
  })

  test('refuses invalid usage', async () => {
    expect(await run('post', '--group', '../x', '--type', 'x')).toMatchObject({ code: 64 })
    expect(await run('post', '--group', 'family', '--type', 'x', '--payload', '{')).toMatchObject({
      code: 64,
    })
    expect(await run('post', '--group', 'family')).toMatchObject({ code: 64 })
    expect(await run('post', '--group', 'nobody', '--type', 'x')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Register the group first'),
    })
  })
})

test('config says where each value came from', async () => {
  writeFileSync(join(data, 'hatchway.config.mjs'), `export default { durability: 'process' }`)
  const { out } = await run('config', '--json')
  const { file, values } = JSON.parse(out)
  expect(file).toBe(join(data, 'hatchway.config.mjs'))
  expect(values).toContainEqual({
    name: 'durability',
    value: 'process',
    source: file,
    env: 'HATCHWAY_DURABILITY',
  })
  expect(values).toContainEqual({ name: 'data', value: data, source: 'command line', env: 'HATCHWAY_DATA' })
  expect((await run('config')).out).toMatch(/logLevel +silent +HATCHWAY_LOG_LEVEL/)
})

test('a wrong configuration stops every command with one sentence', async () => {
  const running = hatchway(['groups', 'list', '--data', data], { HATCHWAY_SWEEP_MS: 'often' })
  expect(await running.ended).toBe(1)
  expect(running.out()).toBe('')
  expect(running.err()).toContain('sweepMs in HATCHWAY_SWEEP_MS is "often"; it must be a whole number')
  expect(running.err()).not.toContain('    at ')
})

test('invalid usage ends with 64', async () => {
  for (const args of [
    ['fly'],
    ['groups'],
    ['groups', 'add'],
    ['tail', '-n', 'x'],
    ['groups', 'list', '--loud'],
  ]) {
    const { code, out, err } = await run(...args)
    expect({ args, code, out }).toEqual({ args, code: 64, out: '' })
    expect(err).not.toBe('')
  }
})

test('a reader that has seen enough is no error', async () => {
  const running = hatchway(['config', '--data', data])
  running.child.stdout?.destroy()
  expect(await running.ended).toBe(0)
  expect(running.err()).toBe('')
})
