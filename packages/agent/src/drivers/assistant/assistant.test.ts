import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  type ApiName,
  type Failure,
  type ModelApiRequest,
  type ModelReply,
  type ScriptedModel,
  serveModelApis,
} from '../../../../testing/src/agents/model-apis.ts'
import {
  hasBubblewrap,
  refusedByGateway,
  startInBubblewrap,
} from '../../../../testing/src/agents/sandboxed.ts'
import type { Live } from '../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../testing/src/until.ts'
import { documentOf, follow, open, type Run, said, start, usedIn, type Wish } from '../../run/testing.ts'

/** The runner with this driver, a real host on the other side of the hatch, and a stand-in for the model's API. */
const apis: readonly ApiName[] = ['messages', 'responses', 'completions', 'generate']

const lastSaid = ({ said }: ModelApiRequest): string => said.at(-1)?.text ?? ''
const everything = ({ said }: ModelApiRequest): string => JSON.stringify(said)
const call = (name: string, input: object | string = {}) => ({ name, input })

async function withModel(live: Live, api: ApiName, model: ScriptedModel) {
  const directory = join(live.data, 'model')
  mkdirSync(directory, { recursive: true })
  const socket = join(directory, 'model.sock')
  const served = await serveModelApis(model, { socket })
  onTestFinished(() => served.close())
  const documentFor = (wish: Wish) =>
    documentOf({ model: 'stand-in', model_api: api, ...wish, driver: { name: 'assistant', ...wish.driver } })
  return {
    served,
    begin: ({ env, ...wish }: Wish & { env?: Record<string, string> }) =>
      start(live, JSON.stringify(documentFor(wish)), { env: { ANTHROPIC_UNIX_SOCKET: socket, ...env } }),
    beginSandboxed: async (wish: Wish) =>
      follow(live, await startInBubblewrap(live, documentFor(wish), directory)),
    /** what the host's gateway would refuse */
    refused: () => served.requests.flatMap(request => refusedByGateway(request) ?? []),
  }
}

const folderOf = (live: Live) => join(live.data, 'groups', 'family')
const sessionOf = (run: Run) => run.of('session')[0]?.session_id ?? expect.fail('no session')
const steps = (run: Run, kind: string) => run.of('step').filter(step => step.kind === kind)
const written = (run: Run) =>
  run
    .of('delta')
    .map(({ text }) => text)
    .join('')
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const inSandbox = describe.skipIf(!hasBubblewrap && process.env.CI !== 'true')

inSandbox.each(apis)('in a sandbox, with a model behind the API “%s”', api => {
  test('calls tools, hears a follow-up in the middle, is stopped, killed, and goes on', async () => {
    const live = await open()
    const released = Promise.withResolvers<void>()
    const never = new Promise<void>(() => {})
    const script: ((request: ModelApiRequest) => ModelReply | Promise<ModelReply>)[] = [
      () => ({
        thinking: 'What is asked? The plan is to look.',
        text: 'I am on it.',
        calls: [
          call('send_message', { text: 'working on it' }),
          call('shell', { command: 'touch made; pwd; ls /home' }),
          call('write_file', { path: 'notes/a.txt', content: 'one\ntwo\n' }),
          call('edit_file', { path: 'notes/a.txt', old: 'two', new: 'three' }),
        ],
      }),
      async () => {
        await released.promise
        return {
          calls: [
            call('read_file', { path: 'pixel.png' }),
            call('search_files', { pattern: 'thr.e' }),
            call('list_files', { path: 'notes' }),
            call('read_file', { path: '/etc/passwd' }),
            call('read_file', { path: 'link' }),
            call('write_file', { path: '../ipc/messages/x.json', content: '{}' }),
            call('write_file', { path: '../../etc/x', content: 'x' }),
            call('no_such_tool'),
          ],
        }
      },
      () => ({ text: 'All done.' }),
      () => ({ text: 'This is going to be long, very long', hold: never }),
      () => ({ text: 'Here I am.' }),
      () => ({ calls: [call('shell', { command: 'sleep 100' })] }),
      () => ({ text: 'I was interrupted.' }),
    ]
    const { served, beginSandboxed, refused } = await withModel(live, api, (request, index) =>
      script[index] ? script[index](request) : { text: 'What else?' },
    )
    writeFileSync(join(folderOf(live), 'AGENTS.md'), 'The family speaks of itself as the crew.')
    writeFileSync(join(folderOf(live), 'pixel.png'), Buffer.from(pixel, 'base64'))
    symlinkSync('/etc/passwd', join(folderOf(live), 'link'))
    const first = said('please look into it')
    const run = await beginSandboxed({ inputs: [first] })
    const session = await until('the session is known', () => run.of('session').length === 1).then(() =>
      sessionOf(run),
    )
    await until('it is asked again', () => served.requests.length === 2)
    const followUp = run.say('and buy milk')
    released.resolve()
    await until('its turn has ended', () => run.results().length === 1)

    expect(run.results()).toEqual(['All done.'])
    expect(usedIn(run)).toEqual([first.id, followUp])
    expect(live.host.store.messages({ group: 'family' }).map(({ text }) => text)).toEqual(['working on it'])
    const [one, two, three] = served.requests
    if (!one || !two || !three) return expect.fail('too few requests')
    expect(one.system).toContain('as the crew')
    expect(lastSaid(one)).toContain('please look into it')
    expect(everything(two)).toContain('/workspace/group')
    // Its home is all there is of any.
    expect(everything(two)).toContain('agent')
    expect(everything(three)).toContain('and buy milk')
    expect(three.said.reduce((sum, { images }) => sum + images, 0)).toBe(1)
    expect(everything(three)).toContain('notes/a.txt:2:three')
    expect(everything(three)).toContain('There is no tool')
    expect(everything(three).match(/is outside the folders that you may/g)).toHaveLength(3)
    expect(everything(three)).toContain('belongs to the host')
    expect(everything(three)).not.toContain('root:x')
    expect(steps(run, 'tool_call').map(({ name }) => name)).toHaveLength(12)
    expect(steps(run, 'tool_result')).toHaveLength(12)
    expect(
      steps(run, 'thinking')
        .map(({ text }) => text)
        .join(''),
    ).toContain('The plan is to look.')
    expect(
      steps(run, 'text')
        .map(({ text }) => text)
        .join(''),
    ).toContain('I am on it.')
    expect(written(run)).toBe('I am on it.All done.')
    // The host was asked about what is not harmless.
    expect(steps(run, 'notice')[0]?.text).toMatch(/^Allowed: touch made/)
    expect(live.events.map(({ type }) => type)).toContain('check_shell')

    run.say('tell me a story')
    await until('it tells', () => written(run).includes('This'))
    run.put('_stop', '')
    await until('it has stopped', () => run.results().length === 2)
    expect(run.results()[1]).toBeNull()
    await until('the request has ended too', () => served.requests[3]?.abandoned.aborted === true)
    run.say('still there?')
    await until('it answers', () => run.results().length === 3)
    expect(run.results()[2]).toBe('Here I am.')
    expect(everything(served.requests[4] ?? one)).toContain('A person stopped this turn')

    run.say('work')
    await until('the tool runs', () => steps(run, 'notice').some(({ text }) => text === 'Allowed: sleep 100'))
    run.kill('SIGKILL')
    await run.exited
    const resumed = await beginSandboxed({ session_id: session, inputs: ['what happened?'] })
    await until('it has answered', () => resumed.results().length === 1)
    expect(resumed.results()).toEqual(['I was interrupted.'])
    expect(sessionOf(resumed)).toBe(session)
    const last = served.requests.at(-1) ?? one
    expect(everything(last)).toContain('please look into it')
    expect(everything(last)).toContain('It is unknown whether it happened')
    expect(refused()).toEqual([])
    expect(readFileSync(join(folderOf(live), 'notes', 'a.txt'), 'utf8')).toBe('one\nthree\n')
    resumed.finish()
    expect(await resumed.exited).toBe(0)
    expect(resumed.strays()).toBe('')
  })

  test('keeps a long conversation within what the model can hold', async () => {
    const live = await open()
    const { served, begin, refused } = await withModel(live, api, request => {
      if (request.tools.length === 0) return { text: `Summary ${served.requests.length}: the code is 4711.` }
      // One message of a user, the summary included; then the turn goes on for some calls.
      const results = request.said.at(-1)?.results.length ?? 0
      return count++ % 3 < 2 || results === 0
        ? { calls: [call('list_files'), call('read_file', { path: 'long.txt' })] }
        : { text: 'So far so good.' }
    })
    let count = 0
    writeFileSync(join(folderOf(live), 'long.txt'), 'many words and more of them\n'.repeat(400))
    const run = begin({ model_context: 8000, inputs: ['the code is 4711'] })
    for (let turn = 1; turn <= 4; turn++) {
      await until(`turn ${turn} has ended`, () => run.results().length === turn)
      if (turn < 4) run.say(`question ${turn}`)
    }
    const last = served.requests.at(-1)
    expect(last && everything(last)).toContain('Summary')
    expect(last && everything(last)).toContain('4711')
    // The stand-in has refused none for a call without a result, nor would the host's gateway.
    expect(run.of('error')).toEqual([])
    expect(refused()).toEqual([])
    for (const { body } of served.requests) expect(JSON.stringify(body).length / 4).toBeLessThan(8000)
    run.finish()
    expect(await run.exited).toBe(0)
  })
})

const failures: readonly [Failure, string][] = [
  [{ status: 401, message: 'invalid x-api-key' }, 'answered 401: invalid x-api-key'],
  [{ status: 404, message: 'no such model' }, 'answered 404: no such model'],
  [{ status: 429, message: 'slow down', retryAfter: 7 }, 'answered 429: slow down'],
  [{ status: 529, message: 'overloaded' }, 'answered 529: overloaded'],
  ['cut', 'broke'],
  ['garbage', 'cannot be read'],
]

test.each(apis)(
  'behind the API “%s”, each failure ends the turn with its reason, and is not tried again',
  async api => {
    const live = await open()
    const { served, begin } = await withModel(
      live,
      api,
      (_, index) => failures[index]?.[0] ?? { text: 'Back again.' },
    )
    const run = begin({ inputs: ['hello'] })
    for (const [index, [, reason]] of failures.entries()) {
      await until(reason, () => run.of('error').length === index + 1)
      expect(run.of('error')[index]?.message).toContain(reason)
      run.say('hello again')
    }
    await until('it has answered', () => run.results().length === 1)
    expect(served.requests).toHaveLength(failures.length + 1)
    // The host says anew what was not answered, so it is not said twice.
    expect(served.requests.at(-1)?.said).toHaveLength(1)
  },
)

describe('a model that is not made for this', () => {
  test('learns what is wrong with its calls, and is ended if it does not', async () => {
    const live = await open()
    const { served, begin } = await withModel(live, 'completions', (_, index) => {
      if (index === 0)
        return { calls: [call('read_file', '{"path": "a'), call('schedule_task', { prompt: 7 }), call('')] }
      if (index === 1)
        return { text: '<think>hm</think><tool_call>{"name": "list_files", "arguments": {}}</tool_call>' }
      return { calls: [call('list_files')] }
    })
    const run = begin({ inputs: ['go'] })
    await until('it has ended', () => run.results().length === 1)
    expect(run.results()[0]).toMatch(/^I have stopped after 100 steps/)
    expect(served.requests).toHaveLength(100)
    const second = everything(served.requests[1] ?? expect.fail())
    expect(second).toContain('not a JSON object')
    expect(second).toContain('It takes: ')
    expect(second).toContain('There is no tool')
    expect(steps(run, 'tool_call')[3]?.name).toBe('list_files')
    expect(everything(served.requests.at(-1) ?? expect.fail())).toContain('You have made this same call')
  })

  test('gets its tools in words where its server knows of none, and no images where it cannot see', async () => {
    const live = await open()
    writeFileSync(join(folderOf(live), 'pixel.png'), Buffer.from(pixel, 'base64'))
    const { served, begin } = await withModel(live, 'completions', request => {
      if (request.tools.length > 0) return { status: 400, message: 'stand-in does not support tools' }
      if (request.said.some(({ images }) => images > 0))
        return { status: 500, message: 'image input is not supported' }
      if (!everything(request).includes('tool_result'))
        return {
          text: 'Let me see. <tool_call>{"name": "read_file", "arguments": {"path": "pixel.png"}}</tool_call>',
        }
      return { text: 'I cannot see it.' }
    })
    const run = begin({ inputs: ['what is on pixel.png?'] })
    await until('it has answered', () => run.results().length === 1)
    expect(run.results()).toEqual(['I cannot see it.'])
    expect(served.requests.at(-1)?.system).toContain('- read_file: ')
    expect(steps(run, 'notice').map(({ text }) => text)).toEqual([
      expect.stringContaining('takes no tools'),
      expect.stringContaining('cannot see images'),
    ])
  })
})

test('a conversation that cannot be read begins anew, and says so', async () => {
  const live = await open()
  const { begin } = await withModel(live, 'messages', () => ({ text: 'Hello.' }))
  const directory = join(folderOf(live), '.home', '.hatchway', 'assistant')
  mkdirSync(directory, { recursive: true })
  const broken = '0199a0b0-0000-7000-8000-000000000000'
  writeFileSync(join(directory, `${broken}.json`), '{"version":1,"messages":[{"role":"king"}]}')
  for (const session_id of [broken, '../../../elsewhere']) {
    const run = begin({ session_id, inputs: ['hello'] })
    await until('it has answered', () => run.results().length === 1)
    expect(steps(run, 'notice')[0]?.text).toContain('a new one begins')
    expect(sessionOf(run)).not.toBe(session_id)
    run.finish()
    await run.exited
  }
})

test('what a small model is told before the conversation fits into 2,000 tokens, with every tool', async () => {
  const live = await open()
  const { served, begin } = await withModel(live, 'completions', (_, index) =>
    index === 0
      ? { calls: [call('call_tool', { name: 'list_groups' }), call('tool_help', { name: 'ask_user' })] }
      : { text: 'Yes.' },
  )
  // The main group's agent is offered more than any other.
  const run = begin({ inputs: ['hello'], env: { HATCHWAY_MAIN: '1' } })
  await until('it has answered', () => run.results().length === 1)
  const [first, second] = served.requests
  const { messages, tools } = z
    .object({ messages: z.array(z.object({ content: z.string() })), tools: z.array(z.unknown()) })
    .parse(first?.body)
  const told = messages[0]?.content ?? ''
  expect((told.length + JSON.stringify(tools).length) / 4).toBeLessThanOrEqual(2000)
  const known = `${told} ${first?.tools.join(' ')}`
  for (const name of [
    'shell',
    'edit_file',
    'send_message',
    'schedule_task',
    'ask_user',
    'save_memory',
    'register_group',
  ])
    expect(known).toContain(name)
  expect(second && everything(second)).toContain('Asks the people in this group’s chat one to four questions')
  expect(second && everything(second)).not.toContain('There is no tool')
})

test('without a model it says what to do', async () => {
  const live = await open()
  const run = start(live, { driver: { name: 'assistant' } })
  expect(await run.exited).toBe(1)
  expect(run.of('error')[0]?.message).toContain('ollama/')
})
