import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { approvalsAnswer, entriesAnswer } from '../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { findProgram } from '../../host/src/base/programs.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { guardedService } from '../src/paths.ts'
import { until } from '../src/until.ts'

/**
 * A call that waits for a person, with nothing played: an MCP client in a sandbox, the server of the agent's side, the
 * daemon as people start it, and the person at its command line.
 */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
const needs = missing ? ` (needs ${missing})` : ''

/** Longer than anybody's patience here, so that only word of the wait can have made it longer. */
const timeoutMs = 5000
const answerMs = 6000

const built = mkdtempSync(join(tmpdir(), 'hatchway-caller-'))
const caller = join(built, 'caller.mjs')
beforeAll(async () => {
  const build = await rolldown({
    input: join(import.meta.dirname, 'waits', 'caller.process.ts'),
    platform: 'node',
    logLevel: 'warn',
  })
  await build.write({ file: caller, format: 'esm', codeSplitting: false })
  await build.close()
  return () => rmSync(built, { recursive: true, force: true })
})

async function open({ onTestFinished }: TestContext, agents: object = {}, fault = '') {
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    atEnd: onTestFinished,
    before: data => {
      const folder = join(data, 'groups', 'main')
      copyFileSync(caller, join(folder, 'caller.mjs'))
      const environment = { HATCHWAY_ANSWER_TIMEOUT_MS: String(answerMs), HATCHWAY_PROGRESS_MS: '200' }
      writeFileSync(join(folder, 'settings.json'), JSON.stringify({ environment, timeoutMs }))
    },
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const config = {
        agents: {
          driver: 'command',
          command: ['/opt/hatchway/node', '/workspace/group/caller.mjs'],
          idleMs: 600_000,
          ...agents,
        },
        services: { plugins: [guardedService] },
        guard: { approvalMs: 600_000 },
      }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, HATCHWAY_RIG_DIR: home, HATCHWAY_FAULT: fault }
    },
  })
  const send = async (path: string, body?: unknown) => {
    const method = body === undefined ? 'GET' : 'POST'
    const { status, text } = await overSocket(announcedSocket(installation.data)).request(method, path, body)
    return { status, answer: JSON.parse(text) }
  }
  const inGroup = (name: string) => join(installation.data, 'groups', 'main', name)
  const cards = async () =>
    entriesAnswer
      .parse((await send('/api/chats/local:main/messages')).answer)
      .entries.flatMap(({ approval }) => approval ?? [])
  return {
    ...installation,
    inGroup,
    /** what is in the lists that people see */
    waiting: async () => approvalsAnswer.parse((await send('/approvals')).answer),
    cards,
    /** the card, once it can be seen in the chat */
    async card() {
      await until(async () => (await cards()).some(({ status }) => status === 'open'))
      const found = (await cards()).find(({ status }) => status === 'open')
      if (!found) throw new Error('there is no card')
      return found
    },
    decide: (id: string, decision: string) => send(`/approvals/${id}`, { decision }),
    heard: () =>
      existsSync(inGroup('heard'))
        ? readFileSync(inGroup('heard'), 'utf8')
            .split('\n')
            .slice(0, -1)
            .map(line => JSON.parse(line))
        : [],
    done: () =>
      existsSync(join(installation.home, 'done'))
        ? readFileSync(join(installation.home, 'done'), 'utf8').trim().split('\n')
        : [],
    ask: (text: string) => installation.hatchway('chat', '--once', text),
  }
}
type Opened = Awaited<ReturnType<typeof open>>

/** Nobody sees it any more, it says so where it was, and a yes that comes now does nothing. */
const isWithdrawn = async (installation: Opened, id: string) => {
  await until(async () => (await installation.cards()).find(card => card.id === id)?.status !== 'open')
  expect((await installation.cards()).find(card => card.id === id)).toMatchObject({
    status: 'withdrawn',
    can_decide: false,
  })
  expect(await installation.waiting()).toEqual([])
  for (const decision of ['allow', 'always']) {
    expect(await installation.decide(id, decision)).toMatchObject({
      status: 409,
      answer: { error: { code: 'wrong_state', message: 'It is no longer needed.' } },
    })
  }
  expect(installation.done()).toEqual([])
}

describe.concurrent('a tool call that waits for a person', () => {
  attempt(
    `waits longer than any time-out, hears of it meanwhile, and has its result after the yes${needs}`,
    async context => {
      const installation = await open(context)
      await installation.ask('wipe it')
      const { id } = await installation.card()
      await until(async () => installation.heard().at(-1)?.ms > Math.max(timeoutMs, answerMs))
      const heard = installation.heard()
      expect(heard.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/^waiting for a decision until /),
      )
      expect(heard.map(({ progress }) => progress)).toEqual(
        heard.map(({ progress }) => progress).toSorted((a, b) => a - b),
      )
      expect(installation.done()).toEqual([])
      expect(await installation.decide(id, 'allow')).toMatchObject({ status: 200 })
      await until(async () => (await installation.texts()).some(text => text.includes('I was told')))
      expect((await installation.texts()).at(-1)).toContain('wiped')
      expect(installation.done()).toEqual([expect.stringContaining('the old photos')])
    },
  )

  attempt(`is taken back with its card when the agent gives it up${needs}`, async context => {
    const installation = await open(context)
    await installation.ask('wipe it, but give up')
    const { id } = await installation.card()
    writeFileSync(installation.inGroup('give-up'), '')
    await isWithdrawn(installation, id)
    expect(await installation.runs()).toMatchObject([{ status: 'running' }])
    writeFileSync(installation.inGroup('go-on'), '')
    await until(async () => (await installation.texts()).some(text => text.includes('I gave up')))
  })

  attempt(`is taken back with its card when a person stops the turn${needs}`, async context => {
    const installation = await open(context)
    await installation.ask('wipe it')
    const { id } = await installation.card()
    await installation.hatchway('runs', 'stop', 'main')
    await isWithdrawn(installation, id)
    // It is not the end of the run that has done it: that waits for what is said next.
    expect(await installation.runs()).toMatchObject([{ status: 'running' }])
  })

  attempt(`is taken back with its card when its run ends${needs}`, async context => {
    const installation = await open(context, { idleMs: 100 })
    await installation.ask('wipe it, and do not wait')
    const { id } = await installation.card()
    writeFileSync(installation.inGroup('leave'), '')
    await isWithdrawn(installation, id)
    await until(async () => (await installation.runs()).every(({ status }) => status === 'done'))
  })

  attempt(`is taken back with its card when the host stops, and when it is killed${needs}`, async context => {
    const installation = await open(context)
    await installation.ask('wipe it')
    for (const end of ['stop', 'kill'] as const) {
      const { id } = await installation.card()
      await installation.daemon()?.[end]()
      await installation.up()
      await until(async () => (await installation.cards()).find(card => card.id === id)?.status !== 'open')
      // The turn is given again, and asks again: that is another card, with another code.
      expect((await installation.cards()).find(card => card.id === id)).toMatchObject({ status: 'withdrawn' })
      expect(await installation.decide(id, 'allow')).toMatchObject({ status: 409 })
      expect(installation.done()).toEqual([])
    }
    const last = await installation.card()
    expect(await installation.decide(last.id, 'allow')).toMatchObject({ status: 200 })
    await until(async () => (await installation.texts()).some(text => text.includes('I was told')))
    expect(installation.done()).toHaveLength(1)
  })

  attempt(
    `that was allowed is done once by a host that is killed before it has begun${needs}`,
    async context => {
      const installation = await open(context, {}, 'released')
      await installation.ask('wipe it')
      const { id } = await installation.card()
      await installation.decide(id, 'allow').catch(() => undefined)
      expect((await installation.daemon()?.exited)?.signal).toBe('SIGKILL')
      expect(installation.done()).toEqual([])
      await installation.up()
      await until(async () => (await installation.cards()).find(card => card.id === id)?.status !== 'open')
      await until(async () => installation.done().length > 0)
      expect((await installation.cards()).find(card => card.id === id)).toMatchObject({ status: 'allowed' })
      expect(await installation.decide(id, 'allow')).toMatchObject({ status: 409 })
      // Its turn is given again, and asks again; nobody says yes a second time.
      await installation.card()
      expect(installation.done()).toHaveLength(1)
    },
  )
})
