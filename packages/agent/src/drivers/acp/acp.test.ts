import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunStart } from '@hatchway/protocol'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { serveModelApis } from '../../../../testing/src/agents/model-apis.ts'
import { hasBubblewrap, startInBubblewrap } from '../../../../testing/src/agents/sandboxed.ts'
import { until } from '../../../../testing/src/until.ts'
import { jsonFiles, playHost, temporaryFolder } from '../../mcp/testing.ts'
import { readEnvironment } from '../../run/environment.ts'
import { documentOf, follow, open, said, usedIn, type Wish } from '../../run/testing.ts'
import type { DriverContext } from '../types.ts'
import { acp } from './acp.ts'

/** A real agent of ours, as one file: what a sandbox sees is its group's folder. */
const built = mkdtempSync(join(tmpdir(), 'hatchway-acp-'))
const program = join(built, 'agent.mjs')
beforeAll(async () => {
  const build = await rolldown({
    input: join(import.meta.dirname, 'test-agent.process.ts'),
    platform: 'node',
  })
  await build.write({ file: program, format: 'esm', codeSplitting: false })
  await build.close()
})
afterAll(() => rmSync(built, { recursive: true, force: true }))

type Event = Parameters<DriverContext['emit']>[0]

/** The driver with its agent's process, and a host that is played. */
async function begin(
  wish: Partial<RunStart> & { home?: string; args?: readonly string[]; command?: string[] } = {},
) {
  const { home = temporaryFolder(), args = [], command, ...start } = wish
  const host = playHost()
  const events: Event[] = []
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const environment = readEnvironment(
    { PATH: process.env.PATH, HATCHWAY_IPC: host.ipc, HATCHWAY_GROUP_DIR: home, HOME: home },
    join(import.meta.dirname, '..', '..', '..', 'dist', 'agent.mjs'),
  )
  const session = await acp({
    start: documentOf({
      ...start,
      driver: { name: 'acp', command: command ?? [process.execPath, program, ...args] },
    }),
    environment,
    abort: abort.signal,
    emit: event => void events.push(event),
  })
  const of = <T extends Event['type']>(type: T) =>
    events.filter((event): event is Extract<Event, { type: T }> => event.type === type)
  const ends = () => events.filter(({ type }) => type === 'result' || type === 'error')
  return {
    host,
    home,
    session,
    of,
    say: (text: string) => session.feed([said(text)]),
    /** how the turn ended that this begins */
    async turn(text: string): Promise<Event | undefined> {
      const count = ends().length
      session.feed([said(text)])
      await until(`the turn ends: ${text}`, () => ends().length > count)
      return ends().at(-1)
    },
    notices: () => of('step').flatMap(({ kind, text }) => (kind === 'notice' ? [text] : [])),
    sessionId: () => of('session').at(-1)?.session_id ?? expect.fail('no session'),
  }
}

describe.skipIf(!hasBubblewrap && process.env.CI !== 'true')('in bubblewrap, without a network', () => {
  test('calls tools, hears a follow-up, is stopped, killed, and goes on', async () => {
    const live = await open()
    const directory = join(live.data, 'model')
    mkdirSync(directory)
    const served = await serveModelApis(() => ({ text: '' }), { socket: join(directory, 'model.sock') })
    onTestFinished(() => served.close())
    const folder = join(live.data, 'groups', 'family')
    writeFileSync(join(folder, 'agent.mjs'), readFileSync(program))
    const command = ['/opt/hatchway/node', '/workspace/group/agent.mjs']
    const start = async (wish: Wish) =>
      follow(
        live,
        await startInBubblewrap(live, documentOf({ ...wish, driver: { name: 'acp', command } }), directory),
      )
    const first = said('do: ask execute|Make a file|touch made')
    const run = await start({ inputs: [first] })
    await until('the turn has begun', () => usedIn(run).length === 1)
    const followUp = run.say('do: tools')
    await until('both turns have ended', () => run.results().length === 2)
    expect(run.results()).toEqual(['yes', 'All done.'])
    expect(usedIn(run)).toEqual([first.id, followUp])
    expect(live.events.map(({ type }) => type)).toContain('check_shell')
    expect(live.host.store.messages({ group: 'family' }).map(({ text }) => text)).toEqual(['working on it'])
    const steps = run.of('step')
    const named = (kind: string) => steps.filter(step => step.kind === kind).map(({ name }) => name)
    expect(named('tool_call')).toEqual(expect.arrayContaining(['send_message', 'schedule_task', 'ask_user']))
    expect(named('tool_result')).toEqual(named('tool_call'))
    expect(steps.find(({ kind }) => kind === 'thinking')?.text).toBe(
      `There are ${named('tool_call').length} tools.`,
    )
    run.say('do: recall')
    await until('it remembers', () => run.results().length === 3)
    expect(run.results()[2]).toContain('do: tools')

    run.say('do: wait')
    await until('it waits', () => usedIn(run).length === 4)
    run.put('_stop', '')
    await until('it has stopped', () => run.results().length === 4)
    expect(run.results()[3]).toBeNull()

    run.say('do: deaf')
    await until('it works', () => run.of('step').some(({ text }) => text === 'Plan: not to listen (pending)'))
    const session_id = run.of('session')[0]?.session_id ?? expect.fail('no session')
    run.kill('SIGKILL')
    await run.exited
    const resumed = await start({ session_id, inputs: ['what happened?'] })
    await until('it has answered', () => resumed.results().length === 1)
    expect(resumed.of('session')[0]?.session_id).toBe(session_id)
    expect(resumed.results()[0]).toContain('A person stopped your last turn')
    expect(resumed.results()[0]).toContain('do: deaf')
    resumed.finish()
    expect(await resumed.exited).toBe(0)
    expect(resumed.strays()).toBe('')
  })
})

describe('what it may do', () => {
  test('a command is asked about; the host’s no is a no, and its yes is for this time only', async () => {
    const { host, turn, notices } = await begin()
    const denied = turn('do: ask execute|ls|curl a')
    const first = await host.take()
    expect(first).toMatchObject({ type: 'check_shell', payload: { command: 'curl a' } })
    host.refuse(first.id, 'denied', 'Ann said no.')
    expect(await denied).toMatchObject({ text: 'no' })
    expect(notices()).toEqual(['Not allowed (Ann said no. (denied)): curl a'])
    const allowed = turn('do: ask execute|ls|curl b')
    host.answer((await host.take()).id, { decision: 'allow' })
    expect(await allowed).toMatchObject({ text: 'yes' })
    // Harmless by the rules that both sides share.
    expect(await turn('do: ask execute|List|ls')).toMatchObject({ text: 'yes' })
    expect(jsonFiles(host.tasks)).toEqual([])
  })

  test('what is no command is asked about as what it is, a tool of the hatch by the host itself', async () => {
    const { host, turn } = await begin()
    for (const [asked, command] of [
      ['edit|Write x', "'agent-tool' 'edit' 'Write x'"],
      ['execute|ls', "'agent-tool' 'execute' 'ls'"],
      ['execute|hatchway_send', "'agent-tool' 'execute' 'hatchway_send'"],
    ]) {
      const ended = turn(`do: ask ${asked}`)
      const question = await host.take()
      expect(question.payload).toEqual({ command })
      host.refuse(question.id, 'denied', 'No.')
      expect(await ended).toMatchObject({ text: 'no' })
    }
    expect(await turn('do: ask other|mcp__hatchway__send_message')).toMatchObject({ text: 'yes' })
    expect(jsonFiles(host.tasks)).toEqual([])
  })

  test('a turn that is stopped takes its question back, and the next one runs', async () => {
    const { host, say, session, of, turn } = await begin()
    say('do: ask execute|x|curl c')
    await host.take()
    session.stopTurn()
    await until('it has stopped', () => of('result').length === 1)
    expect(of('result')[0]?.text).toBeNull()
    expect(await turn('hello')).toMatchObject({ text: expect.stringContaining('A person stopped') })
  })

  test('it gets no files and no terminals of the runner', async () => {
    const { turn } = await begin()
    expect(await turn('do: files')).toMatchObject({ text: 'rejected rejected rejected' })
  })
})

describe('a session', () => {
  test('of an agent that keeps none goes on with what was said', async () => {
    const first = await begin({ args: ['--forgetful'] })
    await first.turn('the code is <4711>')
    await first.session.finish()
    const next = await begin({ args: ['--forgetful'], home: first.home, session_id: first.sessionId() })
    expect(next.sessionId()).not.toBe(first.sessionId())
    expect(await next.turn('do: recall')).toMatchObject({
      text: expect.stringMatching(/<earlier_conversation>[\s\S]*&lt;4711&gt;/),
    })
    await next.session.finish()
    const other = await begin({ args: ['--forgetful'], home: first.home, session_id: 'another' })
    expect(await other.turn('do: recall')).toMatchObject({ text: expect.not.stringContaining('4711') })
  })

  test('that the agent has lost begins anew, and says so', async () => {
    const { sessionId, notices, turn } = await begin({ session_id: 'gone' })
    expect(sessionId()).not.toBe('gone')
    expect(notices()[0]).toContain('cannot be gone on with; a new one begins')
    expect(await turn('hello')).toMatchObject({ type: 'result' })
  })

  test('outlives its process', async () => {
    const { turn, sessionId } = await begin()
    await turn('the code is 4711')
    const before = sessionId()
    expect(await turn('do: exit')).toMatchObject({ type: 'error', session_id: before })
    expect(await turn('do: recall')).toMatchObject({ text: expect.stringContaining('4711') })
    expect(sessionId()).toBe(before)
  })
})

describe('an agent that is broken or hostile', () => {
  test.each([
    ['exit', /ended with code 3 before it had answered\. It said: It is too much for me\. .*\(acp_ended\)$/],
    ['close', /closed its output .*\(acp_ended\)$/],
    ['half', /ended with code 0 .*\(acp_ended\)$/],
    ['long', /a line of more than 8388608 bytes\. .*\(acp_flood\)$/],
    ['flood', /wrote more than \d+ (bytes|lines) in one turn.*\(acp_flood\)$/],
    ['lines', /more than 200000 lines in one turn.*\(acp_flood\)$/],
    ['error', /reports an error: It does not work \(.*no model.*\(acp_failed\)$/],
  ])('that does “%s” ends its turn with a reason, and is opened again', async (word, message) => {
    const { turn } = await begin()
    expect(await turn(`do: ${word}`)).toMatchObject({
      type: 'error',
      message: expect.stringMatching(message),
    })
    expect(await turn('hello')).toMatchObject({ type: 'result', text: expect.stringContaining('hello') })
  })

  test('that writes what is no ACP in between is heard all the same', async () => {
    const { turn } = await begin()
    expect(await turn('do: strange')).toMatchObject({ type: 'result', text: 'Still here.' })
  })

  test('that does not end its turn when it is stopped is ended', { timeout: 60_000 }, async () => {
    const { say, session, of, turn } = await begin()
    say('do: deaf')
    await until('it works', () => of('used').length === 1)
    session.stopTurn()
    await until('it has stopped', () => of('result').length === 1)
    expect(await turn('hello')).toMatchObject({ type: 'result', text: expect.stringContaining('hello') })
  })

  test.each([
    [['/no/such/program'], /could not be started: .*ENOENT.*\(acp_not_started\)$/],
    [['sh', '-c', 'exit 4'], /ended with code 4 .*\(acp_ended\)$/],
    [
      ['sh', '-c', 'read a; echo \'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":7}}\'; cat'],
      /version 7 .*\(acp_not_understood\)$/,
    ],
    [['sh', '-c', 'read a; echo \'{"jsonrpc":"2.0","id":0,"result":[]}\'; cat'], /\(acp_not_understood\)$/],
    [[], /needs a program/],
  ])('that cannot begin fails the run: %j', async (command, message) => {
    await expect(begin({ command })).rejects.toThrow(message)
  })
})
