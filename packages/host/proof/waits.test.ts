import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { approvalsAnswer } from '../src/api/approvals.ts'
import { entriesAnswer } from '../src/api/chat-answers.ts'
import { announcedSocket } from '../src/api/socket.ts'
import { findProgram } from '../src/base/programs.ts'
import { overSocket } from '../src/client/over-socket.ts'
import { openHouse, until } from './house.ts'

/**
 * A call that waits for a person, with nothing played: an MCP client in a sandbox, the server of the agent's side, the
 * daemon as people start it, and the person at its command line.
 */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
const needs = missing ? ` (needs ${missing})` : ''
const plugin = join(import.meta.dirname, 'services', 'guarded.service.ts')

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
  const house = await openHouse({
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
        services: { plugins: [plugin] },
        guard: { approvalMs: 600_000 },
      }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, HATCHWAY_RIG_DIR: home, HATCHWAY_FAULT: fault }
    },
  })
  const send = async (path: string, body?: unknown) => {
    const method = body === undefined ? 'GET' : 'POST'
    const { status, text } = await overSocket(announcedSocket(house.data)).request(method, path, body)
    return { status, answer: JSON.parse(text) }
  }
  const inGroup = (name: string) => join(house.data, 'groups', 'main', name)
  const cards = async () =>
    entriesAnswer
      .parse((await send('/api/chats/local:main/messages')).answer)
      .entries.flatMap(({ approval }) => approval ?? [])
  return {
    ...house,
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
      existsSync(join(house.home, 'done'))
        ? readFileSync(join(house.home, 'done'), 'utf8').trim().split('\n')
        : [],
    ask: (text: string) => house.hatchway('chat', '--once', text),
  }
}
type Opened = Awaited<ReturnType<typeof open>>

/** Nobody sees it any more, it says so where it was, and a yes that comes now does nothing. */
const isWithdrawn = async (house: Opened, id: string) => {
  await until(async () => (await house.cards()).find(card => card.id === id)?.status !== 'open')
  expect((await house.cards()).find(card => card.id === id)).toMatchObject({
    status: 'withdrawn',
    can_decide: false,
  })
  expect(await house.waiting()).toEqual([])
  for (const decision of ['allow', 'always']) {
    expect(await house.decide(id, decision)).toMatchObject({
      status: 409,
      answer: { error: { code: 'wrong_state', message: 'It is no longer needed.' } },
    })
  }
  expect(house.done()).toEqual([])
}

describe.concurrent('a tool call that waits for a person', () => {
  attempt(
    `waits longer than any time-out, hears of it meanwhile, and has its result after the yes${needs}`,
    async context => {
      const house = await open(context)
      await house.ask('wipe it')
      const { id } = await house.card()
      await until(async () => house.heard().at(-1)?.ms > Math.max(timeoutMs, answerMs))
      const heard = house.heard()
      expect(heard.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/^waiting for a decision until /),
      )
      expect(heard.map(({ progress }) => progress)).toEqual(
        heard.map(({ progress }) => progress).toSorted((a, b) => a - b),
      )
      expect(house.done()).toEqual([])
      expect(await house.decide(id, 'allow')).toMatchObject({ status: 200 })
      await until(async () => (await house.texts()).some(text => text.includes('I was told')))
      expect((await house.texts()).at(-1)).toContain('wiped')
      expect(house.done()).toEqual([expect.stringContaining('the old photos')])
    },
  )

  attempt(`is taken back with its card when the agent gives it up${needs}`, async context => {
    const house = await open(context)
    await house.ask('wipe it, but give up')
    const { id } = await house.card()
    writeFileSync(house.inGroup('give-up'), '')
    await isWithdrawn(house, id)
    expect(await house.runs()).toMatchObject([{ status: 'running' }])
    writeFileSync(house.inGroup('go-on'), '')
    await until(async () => (await house.texts()).some(text => text.includes('I gave up')))
  })

  attempt(`is taken back with its card when a person stops the turn${needs}`, async context => {
    const house = await open(context)
    await house.ask('wipe it')
    const { id } = await house.card()
    await house.hatchway('runs', 'stop', 'main')
    await isWithdrawn(house, id)
    // It is not the end of the run that has done it: that waits for what is said next.
    expect(await house.runs()).toMatchObject([{ status: 'running' }])
  })

  attempt(`is taken back with its card when its run ends${needs}`, async context => {
    const house = await open(context, { idleMs: 100 })
    await house.ask('wipe it, and do not wait')
    const { id } = await house.card()
    writeFileSync(house.inGroup('leave'), '')
    await isWithdrawn(house, id)
    await until(async () => (await house.runs()).every(({ status }) => status === 'done'))
  })

  attempt(`is taken back with its card when the host stops, and when it is killed${needs}`, async context => {
    const house = await open(context)
    await house.ask('wipe it')
    for (const end of ['stop', 'kill'] as const) {
      const { id } = await house.card()
      await house.daemon()?.[end]()
      await house.up()
      await until(async () => (await house.cards()).find(card => card.id === id)?.status !== 'open')
      // The turn is given again, and asks again: that is another card, with another code.
      expect((await house.cards()).find(card => card.id === id)).toMatchObject({ status: 'withdrawn' })
      expect(await house.decide(id, 'allow')).toMatchObject({ status: 409 })
      expect(house.done()).toEqual([])
    }
    const last = await house.card()
    expect(await house.decide(last.id, 'allow')).toMatchObject({ status: 200 })
    await until(async () => (await house.texts()).some(text => text.includes('I was told')))
    expect(house.done()).toHaveLength(1)
  })

  attempt(
    `that was allowed is done once by a host that is killed before it has begun${needs}`,
    async context => {
      const house = await open(context, {}, 'released')
      await house.ask('wipe it')
      const { id } = await house.card()
      await house.decide(id, 'allow').catch(() => undefined)
      expect((await house.daemon()?.exited)?.signal).toBe('SIGKILL')
      expect(house.done()).toEqual([])
      await house.up()
      await until(async () => (await house.cards()).find(card => card.id === id)?.status !== 'open')
      await until(async () => house.done().length > 0)
      expect((await house.cards()).find(card => card.id === id)).toMatchObject({ status: 'allowed' })
      expect(await house.decide(id, 'allow')).toMatchObject({ status: 409 })
      // Its turn is given again, and asks again; nobody says yes a second time.
      await house.card()
      expect(house.done()).toHaveLength(1)
    },
  )
})
