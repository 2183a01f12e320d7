import { copyFileSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  InvalidRequest,
  type Model,
  type ModelRequest,
  serveMessagesApi,
} from '../../../testing/src/agents/messages-api.ts'
import type { Live } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { documentOf, open, said, start, taskOf, usedIn, type Wish } from './testing.ts'

/** The runner as a process of its own, with a real host on the other side of the hatch. */
const agentDirectory = join(import.meta.dirname, '..', '..')
const sdkFolder = join(
  agentDirectory,
  'src',
  'drivers',
  'claude',
  'node_modules',
  '@anthropic-ai',
  'claude-agent-sdk',
)
/** the SDK brings it in a package for each platform */
const claudeProgram = () =>
  join(dirname(sdkFolder), `claude-agent-sdk-${process.platform}-${process.arch}`, 'claude')
/** the SDK is installed beside it */
const sources = join(agentDirectory, 'src', 'main.ts')

const tasksOf = ({ host }: Live) => host.store.tasks({ group: 'family' })

describe('the concierge', () => {
  test('schedules a reminder through the hatch, and says it when it is woken', async () => {
    const live = await open()
    const before = Date.now()
    const run = start(live, { inputs: ['@Hatch remind me in ten seconds to stretch'] })
    await until('it has answered', () => run.results().length === 1)
    const [task] = tasksOf(live)
    expect(task).toMatchObject({ prompt: 'Remind: stretch', schedule_type: 'once', status: 'active' })
    const due = Date.parse(task?.schedule_value ?? '')
    expect(due).toBeGreaterThanOrEqual(before + 10_000)
    expect(due).toBeLessThanOrEqual(Date.now() + 10_000)
    expect(run.results()[0]).toMatch(/^I’ll remind you (today|tomorrow) at .*: stretch\. \(Task 1\)$/)
    expect(run.events[0]).toEqual({ type: 'ready' })
    expect(run.of('step').map(({ kind, name }) => [kind, name])).toEqual([
      ['tool_call', 'schedule_task'],
      ['tool_result', 'schedule_task'],
    ])
    run.finish()
    expect(await run.exited).toBe(0)
    expect(run.waits('_close')).toBe(false)
    expect(run.strays()).toBe('')

    const woken = start(live, taskOf(task?.prompt ?? ''))
    expect(await woken.exited).toBe(0)
    expect(woken.results()).toEqual(['⏰ Reminder: stretch'])
  })

  test('lists, pauses, resumes, changes and cancels, and tells what the host refused', async () => {
    const live = await open()
    const run = start(live, { inputs: ['every weekday at 9 remind me of the stand-up'] })
    const answerTo = async (text: string) => {
      const count = run.results().length
      run.say(text)
      await until(`“${text}” is answered`, () => run.results().length > count)
      return run.results().at(-1)
    }
    await until('it has answered', () => run.results().length === 1)
    expect(tasksOf(live)).toMatchObject([
      { schedule_type: 'cron', schedule_value: '0 9 * * 1-5', timezone: 'Europe/Berlin' },
    ])
    expect(await answerTo('remind me every 5 minutes to drink')).toContain('every 5 minutes: drink')
    expect(await answerTo('what are my reminders?')).toMatch(
      /^There are 2 tasks:\n1\. the stand-up \(every weekday at 09:00; next .*\)\n2\. drink \(every 5 minutes; next .*\)$/,
    )
    expect(await answerTo('pause task 2')).toBe('Task 2 is paused.')
    expect(await answerTo('list tasks')).toContain('2. drink (every 5 minutes; paused)')
    expect(await answerTo('resume task 2')).toContain('Task 2 is running again. Next: ')
    expect(await answerTo('change task 2 to every friday at 17:30')).toContain('Task 2 is changed.')
    expect(await answerTo('change task 2 to say water the plants')).toContain('Task 2 is changed.')
    expect(tasksOf(live)[1]).toMatchObject({
      prompt: 'Remind: water the plants',
      schedule_value: '30 17 * * 5',
    })
    expect(await answerTo('cancel the stand-up reminder')).toBe('Task 1 is cancelled.')
    expect(await answerTo('cancel task 77')).toContain('There is no task with this id.')
    expect(await answerTo('remind me to breathe')).toMatch(/^When\?/)
    expect(await answerTo('in ten minutes')).toContain(': breathe.')
    expect(await answerTo('write a poem')).toContain('I did not understand that.')
    expect(tasksOf(live).map(({ id, status }) => [id, status])).toEqual([
      ['1', 'cancelled'],
      ['2', 'active'],
      ['3', 'active'],
    ])
    run.finish()
    expect(await run.exited).toBe(0)
  })
})

describe.each(['auto', 'off'] as const)('with events %s', events => {
  test('follow-ups are used in order, acknowledged and removed; rubbish beside them stays', async () => {
    const live = await open()
    const run = start(live, { events, inputs: [{ ...said('hello'), id: 'first' }] })
    run.put('0-rubbish.json', 'no message at all')
    run.put('notes.txt', 'nor this')
    const ids = Array.from({ length: 20 }, (_, i) =>
      run.say(`every ${i + 1} minutes remind me of number ${i}`),
    )
    await until('all are answered', () => run.results().length === 21)
    expect(usedIn(run)).toEqual(['first', ...ids])
    for (const id of ids) expect(run.waits(`${id}.json`)).toBe(false)
    expect(tasksOf(live).map(({ prompt }) => prompt)).toEqual(ids.map((_, i) => `Remind: number ${i}`))
    // Each is acknowledged before its answer, so that the answer is known to be for it.
    const order = run.events
      .filter(({ type }) => type === 'used' || type === 'result')
      .map(({ type }) => type)
    expect(order).toEqual(Array.from({ length: 21 }, () => ['used', 'result']).flat())
    run.finish()
    expect(await run.exited).toBe(0)
    expect(run.waits('0-rubbish.json') && run.waits('notes.txt')).toBe(true)
  })
})

test('what was not used when the run finishes keeps its file', async () => {
  const live = await open()
  const run = start(live, {
    inputs: ['first'],
    driver: {
      name: 'command',
      command: ['sh', '-c', 'touch begun; while [ ! -e go ]; do sleep 0.05; done; cat'],
    },
  })
  const folder = join(live.data, 'groups', 'family')
  await until('its turn has begun', () => existsSync(join(folder, 'begun')))
  const id = run.say('second')
  run.finish()
  await until('the wish is heeded', () => !run.waits('_close'))
  writeFileSync(join(folder, 'go'), '')
  expect(await run.exited).toBe(0)
  expect(usedIn(run)).toHaveLength(1)
  expect(run.results()).toHaveLength(1)
  expect(run.waits(`${id}.json`)).toBe(true)
})

describe('any command-line agent', () => {
  test('gets each turn’s prompt on its input or in its arguments', async () => {
    const live = await open()
    const folder = join(live.data, 'groups', 'family')
    const waitOnce = 'touch begun; while [ ! -e go ]; do sleep 0.05; done; cat'
    const run = start(live, {
      inputs: ['one'],
      context: [said('<message> of old & new')],
      driver: { name: 'command', command: ['sh', '-c', waitOnce], instructions: 'Be brief.' },
    })
    await until('its turn has begun', () => existsSync(join(folder, 'begun')))
    const ids = [run.say('two'), run.say('three')]
    writeFileSync(join(folder, 'go'), '')
    await until(
      'all are answered',
      () =>
        run
          .of('used')
          .at(-1)
          ?.inputs.includes(ids[1] ?? '') === true,
    )
    await until('the turn has ended', () => run.results().length === run.of('used').length)
    expect(run.results()[0]).toContain('Be brief.')
    expect(run.results()[0]).toContain('&lt;message&gt; of old &amp; new')
    expect(run.results().slice(1).join()).toMatch(/>two<\/message>.*>three<\/message>$/s)
    expect(run.results().slice(1).join()).not.toContain('of old')
    expect(usedIn(run).slice(1)).toEqual(ids)
    run.finish()
    expect(await run.exited).toBe(0)

    const command = ['sh', '-c', 'printf "%s" "$1"', 'sh', 'Prompt: {prompt}']
    const other = start(live, { ...taskOf("it's $& a `task`"), driver: { name: 'command', command } })
    expect(await other.exited).toBe(0)
    expect(other.results()[0]).toMatch(/^Prompt: You are Hatch.*it's \$& a `task`$/s)
  })

  test('that fails, floods, or is not there is told of, and the next message works', async () => {
    const live = await open()
    const script =
      'input=$(cat); case "$input" in *fail*) echo broken >&2; exit 3;; *flood*) yes | head -c 3000000;; *) echo fine;; esac'
    const run = start(live, {
      inputs: ['please fail'],
      driver: { name: 'command', command: ['sh', '-c', script] },
    })
    await until('it has failed', () => run.of('error').length === 1)
    expect(run.of('error')[0]?.message).toBe('sh ended with code 3. It said: broken')
    run.say('a flood')
    await until('it has flooded', () => run.results().length === 1)
    expect(run.results()[0]?.length).toBeLessThanOrEqual(1_000_000)
    run.say('now')
    await until('it works again', () => run.results().at(-1) === 'fine')
    run.finish()
    expect(await run.exited).toBe(0)

    const missing = start(live, { driver: { name: 'command', command: ['/no/such/program'] } })
    await until('it is told', () => missing.of('error').length === 1)
    expect(missing.of('error')[0]?.message).toContain('could not be started')
    const none = start(live, { driver: { name: 'command' } })
    expect(await none.exited).toBe(1)
    expect(none.of('error')[0]?.message).toContain('agents.command')
  })
})

describe('a task’s script', () => {
  test('that says so wakes the agent, with what it found', async () => {
    const live = await open()
    const run = start(
      live,
      taskOf('Remind: read them', 'pwd > where; echo \'{"wakeAgent":true,"data":["a","b"]}\''),
    )
    expect(await run.exited).toBe(0)
    expect(run.of('script')).toEqual([{ type: 'script', wake: true, data: ['a', 'b'] }])
    expect(run.results()[0]).toMatch(/^⏰ Reminder: read them.*"a".*"b"/s)
    const where = readFileSync(join(live.data, 'groups', 'family', 'where'), 'utf8').trim()
    expect(where).toBe(join(live.data, 'groups', 'family'))
  })

  test.each([
    ['echo \'{"wakeAgent":false}\'', { type: 'script', wake: false }],
    ['echo hello', { type: 'script', wake: false, error: expect.stringContaining('not JSON') }],
    ['exit 1', { type: 'script', wake: false, error: expect.stringContaining('code 1') }],
  ])('“%s” wakes nobody', async (script, event) => {
    const live = await open()
    const run = start(live, taskOf('Remind: x', script))
    expect(await run.exited).toBe(0)
    expect(run.of('script')).toEqual([event])
    expect(run.results()).toEqual([null])
  })
})

test('a start document that is not one ends the run with the reason', async () => {
  const live = await open()
  for (const [document, reason] of [
    ['', 'is not JSON'],
    ['{"version":1}', 'run_id'],
    [JSON.stringify({ ...documentOf({}), kind: 'party' }), 'kind'],
  ] as const) {
    const run = start(live, document)
    expect(await run.exited).toBe(2)
    expect(run.events).toEqual([
      { type: 'error', message: expect.stringContaining(reason), session_id: null },
    ])
  }
})

test('a run that is told to end does so at once, and its agent with it', async () => {
  const live = await open()
  const folder = join(live.data, 'groups', 'family')
  const run = start(live, {
    driver: { name: 'command', command: ['sh', '-c', 'echo $$ > pid; sleep 1000'] },
  })
  await until('its turn has begun', () => existsSync(join(folder, 'pid')))
  await until('the pid is written', () => readFileSync(join(folder, 'pid'), 'utf8').endsWith('\n'))
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'))
  run.kill('SIGTERM')
  expect(await run.exited).toBe(1)
  await until('it has ended too', () => !existsSync(`/proc/${pid}`))
})

test('a run gives a sign of life while nothing happens', async () => {
  const live = await open()
  const run = start(live, {})
  await until('it has', () => run.of('heartbeat').length > 1)
})

test('the bundle needs nothing but Node', async () => {
  const live = await open()
  const program = await bundled()
  const run = start(live, { inputs: ['remind me in an hour to stretch', 'list tasks'] }, { program })
  await until('it has answered', () => run.results().length === 2)
  expect(run.results()[1]).toContain('1. stretch')
  run.finish()
  expect(await run.exited).toBe(0)
  expect(run.log()).toBe('')
})

/** The bundle, alone in a folder. The host knows the agent's side only as files; so does this proof. */
async function bundled(): Promise<string> {
  const { bundleIfStale, bundlePath }: { bundleIfStale(): Promise<boolean>; bundlePath: string } =
    await import(join(agentDirectory, 'bundle.ts'))
  await bundleIfStale()
  const elsewhere = temporaryFolder('bundle')
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }))
  const program = join(elsewhere, 'agent.mjs')
  copyFileSync(bundlePath, program)
  return program
}

describe('Claude, for real, with a model that the test plays', () => {
  const withModel = async (live: Live, model: Model) => {
    const socket = join(live.data, 'model.sock')
    const api = await serveMessagesApi(model, { socket })
    onTestFinished(() => api.close())
    const env = {
      ANTHROPIC_UNIX_SOCKET: socket,
      ANTHROPIC_BASE_URL: 'http://localhost',
      ANTHROPIC_API_KEY: 'placeholder',
    }
    const begin = (wish: Wish, options: { program?: string; env?: Record<string, string> } = {}) =>
      start(
        live,
        { driver: { name: 'claude' }, ...wish },
        { program: sources, ...options, env: { ...env, ...options.env } },
      )
    return { api, begin }
  }
  const tool = (name: string, input: object) => ({ name: `mcp__hatchway__${name}`, input })
  const textOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages ?? [])

  test('calls the tools, takes a follow-up in the middle of a turn, and goes on after a restart', async () => {
    const live = await open()
    let followUp = ''
    const { api, begin } = await withModel(live, (request, index) => {
      if (index === 0)
        return { text: 'I am on it.', calls: [tool('send_message', { text: 'working on it' })] }
      if (index === 1) {
        const schedule = { prompt: 'look again', schedule_type: 'interval', schedule_value: '3600000' }
        return { calls: [tool('schedule_task', schedule), tool('pause_task', { task_id: 'nosuch' })] }
      }
      if (followUp === '') followUp = run.say('and buy milk')
      if (textOf(request).includes('do you remember?')) return { text: 'I remember.' }
      if (textOf(request).includes('and buy milk')) return { text: 'All done.' }
      // The turn goes on until it is there.
      return {
        calls: [{ name: 'Bash', input: { command: 'sleep 0.2; echo from the shell', description: 'waits' } }],
      }
    })
    writeFileSync(
      join(live.data, 'groups', 'family', 'CLAUDE.md'),
      'The family speaks of itself as the crew.',
    )
    const first = said('please look into it')
    const run = begin({ inputs: [first], driver: { name: 'claude', instructions: 'Always be kind.' } })
    await until('its turn has ended', () => run.results().length === 1, 120_000)

    expect(run.results()).toEqual(['All done.'])
    expect(live.host.store.messages({ group: 'family' }).map(({ text }) => text)).toEqual(['working on it'])
    expect(tasksOf(live)).toMatchObject([{ prompt: 'look again', schedule_value: '3600000' }])
    expect(textOf(api.requests[2])).toContain('There is no task with this id.')
    expect(textOf(api.requests.at(-1))).toContain('from the shell')
    expect(JSON.stringify(api.requests[0])).toContain('Always be kind.')
    expect(JSON.stringify(api.requests[0])).toContain('as the crew')
    expect(usedIn(run)).toEqual([first.id, followUp])
    expect(run.waits(`${followUp}.json`)).toBe(false)
    const calls = run.of('step').filter(({ kind }) => kind === 'tool_call')
    expect(calls.map(({ name }) => name).slice(0, 4)).toEqual([
      'mcp__hatchway__send_message',
      'mcp__hatchway__schedule_task',
      'mcp__hatchway__pause_task',
      'Bash',
    ])
    const written = run.of('delta').map(({ text }) => text)
    expect(written.join('')).toBe('I am on it.All done.')
    // The hook before each shell command was asked.
    const shell = {
      type: 'step',
      kind: 'notice',
      name: 'Bash',
      text: 'Allowed: sleep 0.2; echo from the shell',
    }
    expect(run.events).toContainEqual(shell)
    const session = run.of('result')[0]?.session_id ?? null
    expect(session).not.toBeNull()
    run.finish()
    expect(await run.exited).toBe(0)
    expect(run.strays()).toBe('')

    const resumed = begin({ session_id: session, inputs: ['do you remember?'] })
    await until('it has answered', () => resumed.results().length === 1, 120_000)
    expect(resumed.results()).toEqual(['I remember.'])
    expect(textOf(api.requests.at(-1))).toContain('please look into it')
    expect(resumed.of('result')[0]?.session_id).toBe(session)
    resumed.finish()
    expect(await resumed.exited).toBe(0)
  })

  test('works from the bundle with the SDK and its program where the host put them', async () => {
    const live = await open()
    const { begin } = await withModel(live, (request, index) =>
      index === 0
        ? { calls: [tool('list_tasks', {})] }
        : { text: textOf(request).includes('tasks') ? 'None.' : '?' },
    )
    const program = await bundled()
    const sdk = join(dirname(program), 'sdk')
    cpSync(sdkFolder, sdk, { recursive: true })
    const env = { HATCHWAY_CLAUDE_SDK: sdk, HATCHWAY_CLAUDE_BIN: claudeProgram() }
    const run = begin({ inputs: ['what is planned?'] }, { program, env })
    await until('it has answered', () => run.results().length === 1, 120_000)
    expect(run.results()).toEqual(['None.'])
    run.finish()
    expect(await run.exited).toBe(0)
  })

  test('begins anew where its conversation is gone', async () => {
    const live = await open()
    const { begin } = await withModel(live, () => ({ text: 'Hello.' }))
    const run = begin({ session_id: '28c77ae9-392c-4c87-970b-e2f8bcd382c2', inputs: ['hello'] })
    await until('it has answered', () => run.results().length === 1, 120_000)
    expect(run.of('error')).toEqual([])
    expect(
      run.of('step').some(({ kind, text }) => kind === 'notice' && text.includes('a new one begins')),
    ).toBe(true)
    run.finish()
    expect(await run.exited).toBe(0)
  })

  test('whose model refuses ends its turn with an error, and takes the next message', async () => {
    const live = await open()
    const { begin } = await withModel(live, request => {
      if (!textOf(request).includes('once more')) throw new InvalidRequest('no such model')
      return { text: 'Here I am.' }
    })
    const first = said('hello')
    const run = begin({ inputs: [first] })
    await until('it has failed', () => run.of('error').length === 1, 120_000)
    expect(run.of('error')[0]?.message).toContain('no such model')
    expect(usedIn(run)).toEqual([first.id])
    run.say('once more')
    await until('it has answered', () => run.results().length === 1, 120_000)
    expect(run.results()).toEqual(['Here I am.'])
    run.finish()
    expect(await run.exited).toBe(0)
  })

  test('that cannot be found is told of', async () => {
    const live = await open()
    const env = { HATCHWAY_CLAUDE_SDK: '/no/such/sdk' }
    const run = start(live, { driver: { name: 'claude' } }, { env })
    expect(await run.exited).toBe(1)
    expect(run.of('error')[0]?.message).toContain('HATCHWAY_CLAUDE_SDK')
  })
})
