import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDockerEngine } from '../src/agents/sandboxes/testing/engines.ts'
import { buildImages, type Foreign, imageOf } from './foreign/images.ts'
import { openHouse, until } from './house.ts'

/**
 * Other projects' containers, each with a program that behaves as the project's own does, in a real Docker engine,
 * under a daemon as people start it. What they are given, where they find it and how they answer is all theirs.
 */
const docker = await startDockerEngine()
afterAll(() => docker?.stop())

const dialects: readonly Foreign[] = ['nanoclaw', 'mdclaw', 'novabot', 'pynchy']

interface Expected {
  /** what the second chat run is told of the first one's session */
  resumed: string | null
  /** what the scheduled one in between is told */
  inTask: string | null
  facts: Record<string, unknown>
}

const plain = { main: false, scheduled: false, uid: 1000, cwd: '/workspace/group' }
const expected: Record<Foreign, Expected> = {
  nanoclaw: {
    inTask: 'nanoclaw-1',
    resumed: 'nanoclaw-1-1',
    facts: { ...plain, session: null, environment: '0', assistant: 'Hatch' },
  },
  // Has no sessions to go on with.
  mdclaw: {
    inTask: '',
    resumed: '',
    facts: { main: false, scheduled: false, uid: 1000, session: '', environment: '0', secrets: {} },
  },
  // One that stays begins anew; one that is given a task goes on.
  novabot: {
    inTask: 'novabot-1',
    resumed: null,
    facts: { ...plain, session: null, environment: 'false', assistant: 'Hatch' },
  },
  pynchy: {
    inTask: 'pynchy-1',
    resumed: 'pynchy-1-1',
    facts: { ...plain, session: null, environment: '0' },
  },
}

const open = async () => {
  const house = await openHouse({
    sandbox: 'docker',
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const groups = Object.fromEntries(
        dialects.map(dialect => [dialect, { image: imageOf(dialect), sandbox: 'docker' }]),
      )
      // Room enough that nobody's session is ended for another's sake.
      const agents = { atOnce: 2 * dialects.length }
      writeFileSync(file, `export default ${JSON.stringify({ agents, groups })}\n`)
      return {
        HATCHWAY_CONFIG: file,
        DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '',
      }
    },
  })
  const chat = (folder: string, text: string, ...more: string[]) =>
    house.hatchway('chat', '--group', folder, '--once', `@Hatch ${text}`, ...more)
  const under = new Map<string, Promise<Row[]>>()
  /** Whoever asks while somebody else is asking gets the same answer: a command costs more than what it tells. */
  const list = (what: string): Promise<Row[]> => {
    const asking =
      under.get(what) ??
      house
        .hatchway(what, 'list', '--json')
        .then(text => JSON.parse(text))
        .finally(() => under.delete(what))
    under.set(what, asking)
    return asking
  }
  const of = async (what: string, folder: string) =>
    (await list(what)).filter(({ group }) => group === folder)
  const textsOf = async (folder: string) => (await of('messages', folder)).map(({ text }) => text)
  return {
    ...house,
    tell: (folder: string, text: string) => chat(folder, text),
    ask: (folder: string, text: string) => chat(folder, text, '--wait'),
    runsOf: (folder: string) => of('runs', folder),
    textsOf,
    /** all it has said, once that has every one of these words */
    says: async (folder: string, ...words: string[]): Promise<string[]> => {
      for (;;) {
        const texts = await textsOf(folder)
        if (words.every(word => texts.some(text => text.includes(word)))) return texts
        await sleep(200)
      }
    },
  }
}

interface Row {
  id: string
  group: string
  kind: string
  status: string
  text: string
  started_at: string
  ended_at: string | null
}

const factsIn = (text: string): Record<string, unknown> => JSON.parse(text.slice(text.indexOf('{')))

// On a contributor's machine Docker may be missing, and the name says so; where everything has to be proven it fails.
const attempt = docker || process.env.CI === 'true' ? test : test.skip
describe(`other projects’ containers${docker ? '' : ' (needs a Docker engine)'}`, () => {
  beforeAll(async () => {
    if (docker) await buildImages(dialects, docker.options.environment)
  })

  attempt('run beside each other, each as its own project would run it', async () => {
    const house = await open()
    for (const dialect of dialects) {
      await house.hatchway(
        ...['groups', 'add', '--folder', dialect, '--jid', `local:${dialect}`],
        ...['--name', dialect, '--dialect', dialect],
      )
    }

    const live = async (dialect: Foreign) => {
      const { facts, inTask, resumed } = expected[dialect]
      const first = await house.ask(dialect, 'hello')
      expect(first).toContain('hello')
      expect(factsIn(first)).toMatchObject({
        dialect,
        ...facts,
        jid: [`local:${dialect}`, `local:${dialect}`],
        folder: [dialect, dialect],
      })

      // Said while it works on something else; both are answered, by the same container.
      await house.tell(dialect, 'something slow')
      await house.tell(dialect, 'and something more')
      const answers = await house.says(dialect, 'slow', 'something more')
      expect(answers).toHaveLength(3)

      await house.tell(dialect, 'announce it')
      await house.says(dialect, `announcement of ${dialect}`, 'announce it')
      expect(await house.runsOf(dialect)).toMatchObject([{ kind: 'chat', status: 'running' }])

      await house.tell(dialect, 'schedule it')
      const ticked = (await house.says(dialect, 'tick')).find(text => text.includes('tick')) ?? ''
      expect(factsIn(ticked)).toMatchObject({ scheduled: true, session: inTask })
      // The task asked the session to finish, and was then asked itself.
      await until(async () => (await house.runsOf(dialect)).every(({ status }) => status !== 'running'))
      expect(await house.runsOf(dialect)).toMatchObject([
        { kind: 'chat', status: 'done' },
        { kind: 'task', status: 'done' },
      ])

      expect(factsIn(await house.ask(dialect, 'again'))).toMatchObject({ scheduled: false, session: resumed })
    }
    await Promise.all(dialects.map(live))

    const firsts = await Promise.all(dialects.map(async dialect => (await house.runsOf(dialect))[0]))
    const [begun, ended] = [firsts.map(run => run?.started_at ?? ''), firsts.map(run => run?.ended_at ?? '')]
    expect((begun.sort().at(-1) ?? '') < (ended.sort()[0] ?? ''), 'all four ran at one time').toBe(true)
    expect(readdirSync(join(house.data, 'ipc', 'errors'))).toEqual([])
    const transcript = await house.hatchway('runs', 'show', (await house.runsOf('pynchy'))[0]?.id ?? '')
    for (const part of ['let me see', '/workspace/group/notes.md', 'no notes', 'here it is'])
      expect(transcript).toContain(part)
    expect(readFileSync(join(house.data, 'groups', 'mdclaw', 'sessions', 'log.md'), 'utf8')).toContain(
      'again',
    )
  })
})
