import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { until } from '../../base/pause.ts'
import { platform } from '../../base/platform.ts'
import { lend, oddServer, type Rig, script, temporaryFolder } from './testing/rig.ts'

/** Programs that do not do what a server should. Each is a real process. */

const odd = { command: [process.execPath, oddServer] }
const fresh = () => join(temporaryFolder(), 'file')
const appears = (file: string) => until(20_000, () => existsSync(file))
const isRunning = (pid: number) => platform.processes().some(entry => entry.pid === pid)
const ends = (pid: number) => until(20_000, () => !isRunning(pid))

const shell = (code: string) => ({ command: ['/bin/sh', '-c', code] })

async function textOf(answer: Promise<Record<string, unknown>>): Promise<string> {
  const { content } = await answer
  const [first] = Array.isArray(content) ? content : []
  return first.text
}
const pidOf = async (rig: Rig) => Number(await textOf(rig.call('odd_who')))

describe('a server that cannot be started', () => {
  test('is not there: the state says so, and it is tried again with pauses', async () => {
    const rig = lend({ command: '/no/such/program' }, { pauseMs: failures => (failures < 3 ? 1 : 60_000) })
    await rig.until(({ text }) => text === 'It could not be started.\nThere is no program /no/such/program.')
    // Two short pauses and a long one: what happens after each try is logged.
    await until(20_000, () => rig.warnings.length === 3)
    expect(rig.warnings.map(line => JSON.parse(line).pauseMs)).toEqual([1, 1, 60_000])
    expect(rig.service.tools()).toEqual([])
  })

  test('its directory is not there', async () => {
    const rig = lend({ ...odd, cwd: '/no/such/directory' })
    await rig.until(({ text }) => text.includes('There is no directory /no/such/directory'))
  })

  test('ends at once: its last words are told, and only those', async () => {
    const rig = lend(
      script(
        `for (let i = 0; i < 5000; i++) console.error('line ' + i); console.error('\\x1b[31mno token'); process.exitCode = 3`,
      ),
    )
    await rig.until(({ text }) => text.includes('It ended with code 3 before it said who it is.'))
    const { text = '' } = rig.service.state?.() ?? {}
    expect(text).toMatch(/line 4999\nno token$/)
    expect(text.length).toBeLessThan(1000)
  })

  test('writes rubbish: that is what the state shows', async () => {
    const rig = lend(shell(`echo 'Listening on port 3000'; cat >/dev/null`), { connectMs: 300 })
    await rig.until(
      ({ text }) =>
        text.includes('did not say who it is within 0.3 seconds') &&
        text.includes('it wrote: Listening on port 3000'),
    )
  })

  test('writes rubbish between what it should write: that does no harm', async () => {
    const rig = lend({
      command: [
        process.execPath,
        '-e',
        `console.log('hello'); console.log('{"a":1}'); import(${JSON.stringify(oddServer)})`,
      ],
    })
    await rig.up()
    expect(await textOf(rig.call('odd_echo', { a: 1 }))).toBe('{"a":1}')
  })

  test('never answers: it is ended with all it started before the next one is', async () => {
    const file = fresh()
    const rig = lend(shell(`trap '' TERM; echo $$ >> ${file}; sleep 600 & sleep 600`), {
      connectMs: 300,
      graceMs: 50,
      pauseMs: () => 0,
    })
    const pids = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [])
    await until(20_000, () => pids().length >= 2)
    const [first = 0] = pids()
    expect(isRunning(first)).toBe(false)
    expect(platform.processes().filter(({ group }) => group === first)).toEqual([])
    await rig.service.stop?.()
    for (const pid of pids()) expect(platform.processes().filter(({ group }) => group === pid)).toEqual([])
  })

  test('a variable it needs is not there: nothing is started, and the state says which', async () => {
    const file = fresh()
    const rig = lend({
      ...script(`require('node:fs').writeFileSync(${JSON.stringify(file)}, '')`),
      env: ['NO_SUCH_KEY'],
    })
    await rig.until(({ text }) => text.includes('no variable NO_SUCH_KEY'))
    expect(existsSync(file)).toBe(false)
  })

  test('start and stop do not wait for it', async () => {
    const rig = lend(script('process.stdin.resume()'))
    expect(rig.service.state?.()).toEqual({ ok: false, text: 'It is being started.' })
    await rig.service.stop?.()
    expect(rig.service.state?.()).toEqual({ ok: false, text: 'It was stopped.' })
  })
})

describe('a server that fails at work', () => {
  test('says no: its words reach the agent', async () => {
    const rig = lend(odd)
    await rig.up()
    expect(await rig.call('odd_fail')).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: 'this is what it says' }],
    })
  })

  test('crashes: the call fails at once and was made once, the others fail too, and the next one finds it up', async () => {
    const rig = lend(odd)
    await rig.up()
    const [file, waiting] = [fresh(), fresh()]
    const other = rig.call('odd_wait', { file: waiting })
    const failing = other.catch(error => error)
    await appears(waiting)
    await expect(rig.call('odd_crash', { file })).rejects.toMatchObject({
      code: 'service_failed',
      message: 'The server odd ended with code 7. It may have been done or not: look before asking again.',
    })
    expect(await failing).toMatchObject({ code: 'service_failed' })
    expect(rig.service.tools().length).toBeGreaterThan(0)
    expect(await textOf(rig.call('odd_echo', {}))).toBe('{}')
    expect(readFileSync(file, 'utf8')).toBe('x')
  })

  test('crashes at a call that may be made twice: it is made again', async () => {
    const rig = lend(odd)
    await rig.up()
    expect(await textOf(rig.call('odd_crash-once', { file: fresh() }))).toBe('done')
  })

  test('crashes each time at a call that may be made twice: it is made twice, not for ever', async () => {
    const rig = lend({ ...odd, tools: { crash: { repeatable: true } } })
    await rig.up()
    const file = fresh()
    await expect(rig.call('odd_crash', { file })).rejects.toMatchObject({ code: 'service_failed' })
    expect(readFileSync(file, 'utf8')).toBe('xx')
  })

  test('is away for longer: calls wait for a moment and then say why it is not there', async () => {
    const rig = lend(odd, { pauseMs: () => 60_000, waitMs: 50 })
    await rig.up()
    await expect(rig.call('odd_crash', { file: fresh() })).rejects.toThrow()
    await expect(rig.call('odd_who')).rejects.toMatchObject({
      code: 'service_failed',
      message: 'The server odd is not there: it ended with code 7.',
    })
    expect(rig.service.state?.().ok).toBe(false)
  })

  test('a call that is taken back is cancelled there, and nothing is restarted', async () => {
    const rig = lend(odd)
    await rig.up()
    const pid = await pidOf(rig)
    const file = fresh()
    const taken = new AbortController()
    const call = rig.call('odd_wait', { file }, { signal: taken.signal })
    const failing = expect(call).rejects.toThrow('no longer needed')
    await appears(file)
    taken.abort(new Error('no longer needed'))
    await failing
    await until(20_000, () => readFileSync(file, 'utf8') === 'begun cancelled')
    expect(await pidOf(rig)).toBe(pid)
  })

  test('hangs: when a call is given up and it gives no sign of life, it is killed and started again', async () => {
    const rig = lend(odd, { pingMs: 300 })
    await rig.up()
    const pid = await pidOf(rig)
    const file = fresh()
    const expiry = new AbortController()
    const failing = expect(rig.call('odd_hang', { file }, { signal: expiry.signal })).rejects.toThrow(
      'time is up',
    )
    await appears(file)
    expiry.abort(new Error('time is up'))
    await failing
    await rig.until(({ text }) => text.includes('gave no sign of life and was ended'))
    await ends(pid)
    expect(await pidOf(rig)).not.toBe(pid)
  })

  test('what hangs takes its offspring along, even what has left its group', async () => {
    const rig = lend(odd, { pingMs: 300 })
    await rig.up()
    const offspring = [
      Number(await textOf(rig.call('odd_offspring', { leavesGroup: false }))),
      Number(await textOf(rig.call('odd_offspring', { leavesGroup: true }))),
    ]
    expect(offspring.map(isRunning)).toEqual([true, true])
    const file = fresh()
    const expiry = new AbortController()
    const failing = expect(rig.call('odd_hang', { file }, { signal: expiry.signal })).rejects.toThrow()
    await appears(file)
    expiry.abort()
    await failing
    for (const pid of offspring) expect(await ends(pid)).toBe(true)
  })
})

describe('answers of any size', () => {
  test('100 MB: that call fails, nobody else notices, and it is not even restarted', async () => {
    const rig = lend(odd)
    await rig.up()
    const pid = await pidOf(rig)
    const file = fresh()
    const taken = new AbortController()
    const other = rig.call('odd_wait', { file }, { signal: taken.signal }).catch(error => error.message)
    await appears(file)
    await expect(rig.call('odd_large', { megabytes: 100 })).rejects.toMatchObject({
      code: 'answer_too_large',
      message: 'The server odd gave an answer that is too large to be read. Ask for less of it.',
    })
    expect(await pidOf(rig)).toBe(pid)
    taken.abort(new Error('taken back'))
    expect(await other).toBe('taken back')
  })

  test('what is within the limit of its tool goes through whole', async () => {
    const rig = lend({ ...odd, answerBytes: 16_000_000 })
    await rig.up()
    expect((await textOf(rig.call('odd_large', { megabytes: 15 }))).length).toBe(15_000_000)
  })

  test('what is larger than may be told comes as files, and the line says where', async () => {
    const rig = lend({ ...odd, answerBytes: 100_000 })
    await rig.up()
    const text = await textOf(rig.call('odd_large', { megabytes: 3 }))
    expect(text).toBe(
      'This text is too large to be shown here. All of it (3000000 bytes) is in the file /main/odd_large.txt.',
    )
    expect(rig.files.get('odd_large.txt')?.length).toBe(3_000_000)
  })

  test('nobody can say what it answers: it is restarted, and the only call it can be says why', async () => {
    const rig = lend(odd)
    await rig.up()
    const pid = await pidOf(rig)
    await expect(rig.call('odd_unanswered', { megabytes: 20 })).rejects.toMatchObject({
      code: 'answer_too_large',
    })
    expect(await pidOf(rig)).not.toBe(pid)
  })

  test('without end: it is restarted', async () => {
    const rig = lend(odd)
    await rig.up()
    const pid = await pidOf(rig)
    await expect(rig.call('odd_endless')).rejects.toMatchObject({ code: 'answer_too_large' })
    expect(await pidOf(rig)).not.toBe(pid)
  })

  test('nested a hundred thousand times: an answer or an error, and the daemon lives', async () => {
    const rig = lend(odd)
    await rig.up()
    await rig.call('odd_nested', { depth: 100_000 }).catch(() => {})
    expect(await textOf(rig.call('odd_echo', {}))).toBe('{}')
  })
})

describe('a list of tools that changes', () => {
  test('is listed again', async () => {
    const rig = lend(odd)
    await rig.up()
    const names = () => rig.service.tools().map(({ name }) => name)
    expect(names()).not.toContain('odd_new')
    await rig.call('odd_grow', { name: 'new' })
    await rig.until(() => names().includes('odd_new'))
    expect(await textOf(rig.call('odd_new'))).toBe('new')
    await rig.call('odd_shrink')
    await rig.until(() => !names().includes('odd_short-lived'))
  })

  test('also by a server that knows only the newest protocol', async () => {
    const rig = lend({ command: [process.execPath, oddServer, 'modern'] })
    await rig.up()
    expect(await textOf(rig.call('odd_echo', { a: 1 }))).toBe('{"a":1}')
    await rig.call('odd_grow', { name: 'new' })
    await rig.until(() => rig.service.tools().some(({ name }) => name === 'odd_new'))
  })
})

test('a server that asks for a model, a person or folders is refused, and goes on', async () => {
  const rig = lend(odd)
  await rig.up()
  expect(JSON.parse(await textOf(rig.call('odd_ask')))).toEqual(Array(3).fill('Method not found'))
})

describe('the end', () => {
  test('one that ignores the end of its input and SIGTERM is killed, with its offspring', async () => {
    const rig = lend(
      {
        command: [
          '/bin/sh',
          '-c',
          'exec 3<&0; "$@" <&3 & wait',
          'sh',
          process.execPath,
          oddServer,
          'immortal',
        ],
      },
      { graceMs: 100 },
    )
    await rig.up()
    const pid = await pidOf(rig)
    const child = Number(await textOf(rig.call('odd_offspring', { leavesGroup: true })))
    await rig.service.stop?.()
    expect([pid, child].map(isRunning)).toEqual([false, false])
    await expect(rig.call('odd_who')).rejects.toThrow('it was stopped')
  })

  test('nothing survives a daemon that is killed', async () => {
    const daemon = spawn(
      process.execPath,
      [fileURLToPath(new URL('./testing/daemon.process.ts', import.meta.url))],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const [line] = await once(createInterface({ input: daemon.stdout }), 'line')
    const pids: number[] = JSON.parse(line)
    expect(pids.map(isRunning)).toEqual([true, true])
    daemon.kill('SIGKILL')
    for (const pid of pids) expect(await ends(pid)).toBe(true)
  })
})

describe('a tool that runs as a task', () => {
  /** A server with one such tool: the first words it is given are the states of the task, one for each look at it. */
  const tasks = (file: string, ...states: string[]) =>
    script(`
      const { appendFileSync } = require('node:fs')
      const states = ${JSON.stringify(states)}
      const task = () => ({ taskId: 't1', status: states.shift() ?? 'working', statusMessage: 'step', createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: null, pollInterval: 1 })
      const answers = {
        initialize: () => ({ protocolVersion: '2025-11-25', serverInfo: { name: 't', version: '1' },
          capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } } }),
        'tools/list': () => ({ tools: [{ name: 'slow', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }] }),
        'tools/call': () => ({ task: task() }),
        'tasks/get': task,
        'tasks/cancel': task,
        'tasks/result': () => ({ content: [{ type: 'text', text: 'the result' }] }),
      }
      require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
        const { id, method, params } = JSON.parse(line)
        appendFileSync(${JSON.stringify(file)}, method + (params?.task ? '+task ' : ' '))
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.() ?? {} }))
      })`)

  test('is asked about until it is over, and then for its result', async () => {
    const file = fresh()
    const rig = lend(tasks(file, 'working', 'working', 'completed'))
    await rig.up()
    const told: unknown[] = []
    const progress = (step: unknown) => void told.push(step)
    expect(await textOf(rig.call('odd_slow', {}, { progress }))).toBe('the result')
    expect(told).toEqual([1, 2].map(progress => ({ progress, message: 'step' })))
    expect(readFileSync(file, 'utf8')).toMatch(/tools\/call\+task tasks\/get tasks\/get tasks\/result $/)
  })

  test('is cancelled when nobody wants it any longer, or when it wants a person', async () => {
    const file = fresh()
    const seen = (word: string) => until(20_000, () => readFileSync(file, 'utf8').includes(word))
    const rig = lend(tasks(file, 'working'))
    await rig.up()
    const taken = new AbortController()
    const failing = expect(rig.call('odd_slow', {}, { signal: taken.signal })).rejects.toThrow('taken back')
    await seen('tasks/get')
    taken.abort(new Error('taken back'))
    await failing
    expect(await seen('tasks/cancel')).toBe(true)
    const asking = lend(tasks(fresh(), 'working', 'input_required'))
    await asking.up()
    await expect(asking.call('odd_slow')).rejects.toMatchObject({
      code: 'service_failed',
      message: expect.stringContaining('ask_user'),
    })
  })
})
