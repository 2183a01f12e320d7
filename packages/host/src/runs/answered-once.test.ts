import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Group, type RunEvent, type RunStart, recordSeparator } from '@hatchway/protocol'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StoreFailure } from '../base/storage-failure.ts'
import { configSchema } from '../config.ts'
import type { SandboxExit, SandboxProcess } from '../sandboxes/types.ts'
import { type DatabaseFault, databaseFaults, openFaultyStore } from '../store/testing/faults.ts'
import { textMessage } from '../store/text-message.ts'
import { createInputBox, inputId } from './input-box.ts'
import { createRunQueue } from './run-queue.ts'

/**
 * A message of a person gets exactly one answer in the chat, wherever the disk or the database fails on the way: in a
 * statement, at COMMIT, right after it, or in whatever the host does next. The database is a real one that really runs
 * out of room; the test plays the agent.
 */
const until = async (condition: () => boolean) => {
  while (!condition()) await sleep(5)
}

/** Larger than the room that is left in a database that has no more pages. */
const answer = `the answer ${'x'.repeat(200_000)}`

interface Agent {
  start: RunStart
  tell(...events: RunEvent[]): void
  /** names its inputs and answers them */
  answer(text?: string): void
  exit(code: number): void
}

const openRig = (play: (agent: Agent, run: number) => void = () => {}) => {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-once-'))
  const box = join(data, 'ipc', 'family')
  mkdirSync(join(box, 'input'), { recursive: true })
  mkdirSync(join(data, 'staging'))
  /** how often something failed on purpose */
  const failures = { count: 0 }
  const broken = { listeners: false, transcript: false }
  const failIf = (isBroken: boolean) => {
    if (!isBroken) return
    failures.count++
    throw new StoreFailure('no space left')
  }
  const database = openFaultyStore(join(data, 'hatchway.db'), () => {
    failures.count++
  })
  const { store } = database
  const group: Group = {
    folder: 'family',
    jid: 'family@chat',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
    trigger: null,
    requires_trigger: false,
    channel: null,
    added_at: new Date().toISOString(),
    last_activity: null,
  }
  store.transaction(transaction => transaction.insertGroup(group))

  const agents: Agent[] = []
  const launch = async (start: RunStart): Promise<SandboxProcess> => {
    const stdout = new PassThrough()
    const exited = Promise.withResolvers<SandboxExit>()
    const exit = (code: number) => {
      stdout.end()
      exited.resolve({ code, signal: null })
    }
    const tell = (...events: RunEvent[]) => {
      for (const event of events) stdout.write(`${recordSeparator}${JSON.stringify(event)}\n`)
    }
    const ids = start.inputs.map(({ id }) => id)
    const agent: Agent = {
      start,
      tell,
      answer: (text = answer) =>
        tell({ type: 'used', inputs: ids }, { type: 'result', text, session_id: null }),
      exit,
    }
    agents.push(agent)
    play(agent, agents.length)
    return {
      name: 'test',
      stdin: new PassThrough().resume(),
      stdout,
      stderr: new PassThrough(),
      exited: exited.promise,
      kill: async () => exit(1),
    }
  }
  let messages = 0
  const open = (problem?: string) =>
    createRunQueue({
      config: { ...configSchema.parse({ timezone: 'UTC' }), data },
      store: {
        ...store.agents,
        addSteps(steps) {
          failIf(broken.transcript)
          store.agents.addSteps(steps)
        },
      },
      group: store.group,
      launch,
      inputBox: () =>
        createInputBox({
          directory: box,
          dialect: 'hatchway',
          staging: join(data, 'staging'),
          owner: undefined,
          timezone: 'UTC',
          now: () => new Date(),
        }),
      message: (to, text, author) => ({ ...textMessage(++messages, to, text, Date.now()), author }),
      said: () => failIf(broken.listeners),
      turnStopped: () => failIf(broken.listeners),
      typing: () => failIf(broken.listeners),
      refusals: () => {
        failIf(broken.listeners)
        return []
      },
      modelProblem: () => problem,
      log: pino({ level: 'silent' }),
      now: Date.now,
    })
  let queue = open()
  onTestFinished(async () => {
    await queue.stop()
    store.close()
    rmSync(data, { recursive: true })
  })
  const keep = (text: string) =>
    store.agents.receive({
      ...{ group: 'family', jid: 'family@chat', channel: 'test', externalId: null },
      ...{ sender: 'ada', senderName: 'Ada', text, status: 'waiting', createdAt: Date.now() },
    })
  const say = (text: string) => {
    keep(text)
    queue.kick()
  }
  return {
    database,
    broken,
    failures,
    agents,
    keep,
    say,
    queue: () => queue,
    texts: () => store.messages({ group: 'family' }).map(({ text }) => text),
    statuses: () => store.agents.incoming({ group: 'family' }).map(({ status }) => status),
    runs: () => store.agents.runs({}),
    /** the next failure of a run is told to people at once, and not after three runs */
    async giveUpAtOnce() {
      await queue.stop()
      queue = open('The model cannot be asked.')
    },
    stop: () => queue.stop(),
    /** as a daemon that starts again does with what the last one left */
    startAgain() {
      for (const { id } of store.agents.runs({ status: 'running' })) {
        store.agents.giveBack(id)
        store.agents.updateRun(id, { status: 'stopped', endedAt: Date.now() })
      }
      queue = open()
      queue.kick()
    },
    quiet: () => until(() => queue.running().every(({ state }) => state === 'idle')),
  }
}
type Rig = ReturnType<typeof openRig>

interface Fault {
  where: string
  begin(rig: Rig): void
  end(rig: Rig): void
}
const inDatabase = (name: DatabaseFault): Fault => ({
  where: databaseFaults[name],
  begin: ({ database }) => database.begin(name),
  end: ({ database }) => database.end(name),
})
const inHost = (where: string, name: keyof Rig['broken']): Fault => ({
  where,
  begin: ({ broken }) => {
    broken[name] = true
  },
  end: ({ broken }) => {
    broken[name] = false
  },
})
const faults: readonly Fault[] = [
  inDatabase('statement'),
  inDatabase('commit'),
  inDatabase('commitReport'),
  inDatabase('afterCommit'),
  inHost('in the transcript', 'transcript'),
  inHost('in what the session tells the rest of the host', 'listeners'),
]

describe.each(faults)('the disk fails $where', ({ begin, end }) => {
  test('while an answer is stored', async () => {
    const rig = openRig()
    rig.say('hello')
    await until(() => rig.agents.length === 1)
    begin(rig)
    rig.agents[0]?.answer()
    await until(() => rig.failures.count > 0)
    end(rig)
    await rig.quiet()
    expect(rig.texts()).toEqual([answer])
    expect(rig.statuses()).toEqual(['used'])
    expect(rig.agents).toHaveLength(1)
    rig.say('and again')
    await until(() => rig.statuses()[1] === 'given')
    rig.agents[0]?.tell(
      { type: 'used', inputs: [inputId(2)] },
      { type: 'result', text: 'short', session_id: null },
    )
    await until(() => rig.texts().length === 2)
    expect(rig.statuses()).toEqual(['used', 'used'])
  })

  test('while an answer is stored, and the host stops before it could be', async () => {
    const rig = openRig()
    rig.say('hello')
    await until(() => rig.agents.length === 1)
    begin(rig)
    rig.agents[0]?.answer()
    await until(() => rig.failures.count > 0)
    await rig.stop()
    end(rig)
    rig.startAgain()
    // It is given again only if the answer was not stored.
    if (rig.texts().length === 0) {
      await until(() => rig.agents.length === 2)
      rig.agents[1]?.answer()
      await until(() => rig.texts().length === 1)
    }
    await rig.quiet()
    expect(rig.texts()).toEqual([answer])
    expect(rig.statuses()).toEqual(['used'])
  })

  test('while the end of a run that is given up is stored', async () => {
    const rig = openRig()
    await rig.giveUpAtOnce()
    rig.say('hello')
    await until(() => rig.agents.length === 1)
    begin(rig)
    rig.agents[0]?.exit(1)
    await until(() => rig.failures.count > 0 || rig.queue().running().length === 0)
    end(rig)
    await until(() => rig.queue().running().length === 0)
    expect(rig.texts()).toEqual(['I could not answer that. The model cannot be asked.'])
    expect(rig.statuses()).toEqual(['used'])
  })

  test('while a person stops the turn', async () => {
    const rig = openRig()
    rig.say('hello')
    await until(() => rig.agents.length === 1)
    begin(rig)
    const stopped = () => {
      try {
        return rig.queue().stopTurn('family', 'Ada')
      } catch (error) {
        return error
      }
    }
    // Where it throws, nothing was done, and the person asks again.
    const first = stopped()
    end(rig)
    if (first !== true) expect(stopped()).toBe(true)
    begin(rig)
    rig.agents[0]?.answer()
    await until(() => rig.queue().running()[0]?.state === 'idle')
    end(rig)
    rig.say('later')
    await until(() => rig.statuses()[1] === 'given')
    rig.agents[0]?.tell(
      { type: 'used', inputs: [inputId(2)] },
      { type: 'result', text: 'short', session_id: null },
    )
    await until(() => rig.texts().length === 2)
    expect(rig.texts()).toEqual(['Stopped by Ada.', 'short'])
    expect(rig.statuses()).toEqual(['used', 'used'])
  })

  test('while a message in the middle of a turn is stored', async () => {
    const rig = openRig()
    rig.say('hello')
    await until(() => rig.agents.length === 1)
    begin(rig)
    rig.agents[0]?.tell({ type: 'message', text: answer })
    await until(() => rig.failures.count > 0)
    end(rig)
    rig.agents[0]?.answer('done')
    await until(() => rig.texts().includes('done'))
    expect(rig.texts()).toEqual([answer, 'done'])
  })
})

describe.each([inDatabase('commit'), inDatabase('commitReport')])(
  'the disk fails $where',
  ({ begin, end }) => {
    test('while it is noted what a run, and then its agent, is given', async () => {
      const rig = openRig()
      const saying = async (text: string) => {
        const { count } = rig.failures
        rig.keep(text)
        begin(rig)
        rig.queue().kick()
        await until(() => rig.failures.count > count)
        end(rig)
      }
      await saying('one')
      await until(() => rig.agents.length === 1)
      rig.agents[0]?.answer('to 1')
      await rig.quiet()
      await saying('two')
      await until(() => rig.statuses()[1] === 'given')
      rig.agents[0]?.tell(
        { type: 'used', inputs: [inputId(2)] },
        { type: 'result', text: 'to 2', session_id: null },
      )
      await until(() => rig.texts().length === 2)
      expect(rig.texts()).toEqual(['to 1', 'to 2'])
      expect(rig.runs()).toHaveLength(1)
    })
  },
)

test('what an agent has under way when a person stops it is not said after the stop', async () => {
  const rig = openRig()
  rig.say('one')
  rig.say('two')
  await until(() => rig.agents.length === 1)
  expect(rig.queue().stopTurn('family', 'Ada')).toBe(true)
  // An agent that answers each message by itself, and has not seen yet that it should stop.
  for (const id of [1, 2])
    rig.agents[0]?.tell(
      { type: 'used', inputs: [inputId(id)] },
      { type: 'result', text: `to ${id}`, session_id: null },
    )
  rig.agents[0]?.tell({ type: 'step', kind: 'text', text: 'heard' })
  rig.say('three')
  await until(() => rig.statuses()[2] === 'given')
  rig.agents[0]?.tell(
    { type: 'used', inputs: [inputId(3)] },
    { type: 'result', text: 'to 3', session_id: null },
  )
  await until(() => rig.texts().includes('to 3'))
  expect(rig.texts()).toEqual(['Stopped by Ada.', 'to 3'])
})
