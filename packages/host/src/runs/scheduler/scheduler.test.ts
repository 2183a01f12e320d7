import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRetries } from '../../base/retry.ts'
import { StoreFailure } from '../../base/storage-failure.ts'
import { createScheduler } from './scheduler.ts'
import { day, hour, minute, openBench } from './testing.ts'
import type { RunEnd } from './types.ts'

type Bench = ReturnType<typeof openBench>

async function bench(options: Parameters<typeof openBench>[0] = {}): Promise<Bench> {
  const opened = openBench(options)
  onTestFinished(() => opened[Symbol.dispose]())
  await opened.addGroup('main', { main: true })
  await opened.addGroup('family')
  return opened
}
/** Runs that end when the test says so. */
function held() {
  const waiting: ((end: RunEnd) => void)[] = []
  const run: NonNullable<NonNullable<Parameters<typeof openBench>[0]>['run']> = (_, begin) => {
    if (!begin(`run-${waiting.length}`).ok) return Promise.reject(new Error('not begun'))
    return new Promise(resolve => waiting.push(resolve))
  }
  return {
    run,
    finish: (end: RunEnd = { status: 'done', result: 'ok', error: null }) => waiting.shift()?.(end),
  }
}
const schedule = (
  testbed: Bench,
  task_id: string,
  schedule_type: 'cron' | 'interval' | 'once',
  schedule_value: string,
  more: object = {},
  who = 'family',
) =>
  testbed.ask(who, 'schedule_task', {
    task_id,
    prompt: task_id,
    schedule_type,
    schedule_value,
    context_mode: 'isolated',
    ...more,
  })
const history = (testbed: Bench, taskId: string) =>
  testbed.agents
    .occurrences({ taskId })
    .map(({ dueAt, status }) => `${new Date(dueAt).toISOString().slice(11, 19)} ${status}`)

describe('a task', () => {
  test('runs when it is due, and what came of it is noted', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'stretch', 'once', '2026-01-15T12:00:10Z')
    await testbed.time.pass(9_999)
    expect(testbed.begun).toEqual([])
    await testbed.time.pass(1)
    expect(testbed.dueTimes('stretch')).toEqual(['2026-01-15T12:00:10.000Z'])
    await testbed.time.pass(0)
    expect(testbed.agents.task('stretch')).toMatchObject({
      status: 'completed',
      next_run: null,
      last_run: '2026-01-15T12:00:10.000Z',
      last_result: 'did stretch',
    })
    expect(testbed.agents.occurrences({})).toMatchObject([
      {
        taskId: 'stretch',
        group: 'family',
        status: 'done',
        runId: 'run-1',
        result: 'did stretch',
        error: null,
      },
    ])
    expect([...testbed.changed]).toEqual(['family'])
    await testbed.time.pass(day)
    expect(testbed.begun).toHaveLength(1)
  })

  test('with an interval keeps its rhythm, however late it is noticed', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'often', 'interval', '90000')
    await testbed.time.pass(90_000)
    testbed.time.jump(7)
    await testbed.time.pass(hour)
    const times = testbed.dueTimes('often')
    expect(times.slice(0, 3)).toEqual([
      '2026-01-15T12:01:30.000Z',
      '2026-01-15T12:03:00.000Z',
      '2026-01-15T12:04:30.000Z',
    ])
    expect(times).toHaveLength(41)
  })

  test('far away, further than a timer reaches, is slept towards in short naps', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'far', 'once', '2026-02-10T12:00:00Z')
    await testbed.time.pass(0)
    expect(testbed.time.sleeping()).toBe(minute)
    await testbed.time.pass(26 * day)
    expect(testbed.dueTimes('far')).toEqual(['2026-02-10T12:00:00.000Z'])
  })

  test('costs nothing while there is none', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await testbed.time.pass(0)
    expect(testbed.time.sleeping()).toBe(0)
    await schedule(testbed, 'soon', 'once', '2026-01-15T12:00:05Z')
    await testbed.ask('family', 'cancel_task', { task_id: 'soon' })
    await testbed.time.pass(0)
    expect(testbed.time.sleeping()).toBe(0)
  })

  test('that is changed runs at its new time only', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 't', 'once', '2026-01-15T12:30:00Z')
    await testbed.time.pass(minute)
    await testbed.ask('family', 'update_task', { task_id: 't', schedule_value: '2026-01-15T12:10:00Z' })
    await testbed.time.pass(hour)
    expect(testbed.dueTimes('t')).toEqual(['2026-01-15T12:10:00.000Z'])
  })

  test('that fails says why, and goes on at its next time', async () => {
    const testbed = await bench({
      run: (_, begin) => {
        begin('r')
        return Promise.reject(new Error('the sandbox is broken'))
      },
    })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(2 * minute + 1)
    expect(history(testbed, 't')).toEqual(['12:01:00 failed', '12:02:00 failed'])
    expect(testbed.agents.task('t')).toMatchObject({ last_result: 'Error: the sandbox is broken' })
  })

  test('whose script did not wake the agent is noted as skipped', async () => {
    const testbed = await bench({
      async run(_, begin) {
        begin('r')
        return { status: 'skipped', result: null, error: 'The script did not wake the agent.' }
      },
    })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(minute)
    await testbed.time.pass(0)
    expect(testbed.agents.occurrences({})).toMatchObject([
      { status: 'skipped', startedAt: expect.any(Number), error: 'The script did not wake the agent.' },
    ])
  })
})

describe('a run that takes longer than its interval', () => {
  test('is not started a second time; what became due meanwhile is skipped with the reason', async () => {
    const { run, finish } = held()
    const testbed = await bench({ run })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(3 * minute + 1)
    expect(history(testbed, 't')).toEqual(['12:01:00 running', '12:02:00 skipped', '12:03:00 skipped'])
    expect(testbed.agents.occurrences({ status: 'skipped' })[0]?.error).toBe(
      'The run before was still going on.',
    )
    finish()
    await testbed.time.pass(minute)
    expect(history(testbed, 't').at(-1)).toBe('12:04:00 running')
    expect(testbed.begun).toHaveLength(2)
  })

  test('does not hold up another task', async () => {
    const { run } = held()
    const testbed = await bench({ run })
    testbed.scheduler.start()
    await schedule(testbed, 'slow', 'interval', '60000')
    await schedule(testbed, 'other', 'interval', '60000')
    await testbed.time.pass(minute)
    expect(testbed.begun.map(({ task }) => task.id)).toEqual(['slow', 'other'])
  })

  test('finishes when its task is paused, and starts no more', async () => {
    const { run, finish } = held()
    const testbed = await bench({ run })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(minute)
    await testbed.ask('family', 'pause_task', { task_id: 't' })
    await testbed.time.pass(5 * minute)
    finish({ status: 'done', result: 'late', error: null })
    await testbed.time.pass(hour)
    expect(history(testbed, 't')).toEqual(['12:01:00 done'])
    expect(testbed.agents.task('t')).toMatchObject({ status: 'paused', last_result: 'late' })

    // Resuming does not fire at once.
    await testbed.ask('family', 'resume_task', { task_id: 't' })
    await testbed.time.pass(minute - 1)
    expect(testbed.begun).toHaveLength(1)
    await testbed.time.pass(1)
    expect(testbed.begun).toHaveLength(2)
  })
})

describe('what is claimed and waits for a free place', () => {
  /** Claimed, and begun only when the test says so. */
  const queued = async () => {
    const places: (() => void)[] = []
    const testbed = await bench({
      run: async (_, begin) => {
        await new Promise<void>(resolve => places.push(resolve))
        const begun = begin('r')
        return begun.ok
          ? { status: 'done', result: begun.task.prompt, error: null }
          : { status: 'failed', result: null, error: 'must not be noted' }
      },
    })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(minute)
    expect(history(testbed, 't')).toEqual(['12:01:00 claimed'])
    return {
      testbed,
      go: async () => {
        places.shift()?.()
        await testbed.time.pass(0)
        await testbed.time.pass(0)
      },
    }
  }

  test('runs what the task says when it starts', async () => {
    const { testbed, go } = await queued()
    await testbed.ask('family', 'update_task', { task_id: 't', prompt: 'new words' })
    await go()
    expect(testbed.agents.occurrences({})).toMatchObject([{ status: 'done', result: 'new words' }])
  })

  test.each([
    ['paused', 'pause_task'],
    ['cancelled', 'cancel_task'],
  ] as const)('does not run if the task is %s meanwhile', async (word, command) => {
    const { testbed, go } = await queued()
    await testbed.ask('family', command, { task_id: 't' })
    await go()
    expect(testbed.agents.occurrences({})).toMatchObject([
      { status: 'skipped', startedAt: null, error: `The task was ${word} before it ran.` },
    ])
    expect(testbed.begun).toEqual([])
  })

  test('does not run if the rights are gone meanwhile, and the task is paused', async () => {
    const { testbed, go } = await queued()
    testbed.store.transaction(transaction => {
      transaction.deleteGroup('family')
    })
    await go()
    expect(history(testbed, 't')).toEqual(['12:01:00 skipped'])
    expect(testbed.agents.task('t')).toMatchObject({
      status: 'paused',
      last_result: 'The group it runs in is not registered any more.',
    })
  })

  test('stays claimed when the host stops, and runs after the next start', async () => {
    const { testbed, go } = await queued()
    await testbed.scheduler.stop()
    await go()
    expect(history(testbed, 't')).toEqual(['12:01:00 claimed'])
    expect(testbed.begun).toEqual([])
    testbed.kill()
    testbed.time.jump(10_000)
    testbed.revive()
    await testbed.time.pass(0)
    await go()
    expect(history(testbed, 't')).toEqual(['12:01:00 done'])
    expect(testbed.begun).toHaveLength(1)
  })
})

describe('rights are those of the moment', () => {
  test('a task of a group that is no main group any more does not run in others’ chats, and is paused', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'foreign', 'interval', '60000', { group: 'family' }, 'main')
    await schedule(testbed, 'own', 'interval', '60000', {}, 'main')
    await testbed.time.pass(minute)
    expect(testbed.begun).toHaveLength(2)
    testbed.store.transaction(transaction => {
      transaction.deleteGroup('main')
    })
    await testbed.addGroup('main', { main: false })
    await testbed.time.pass(5 * minute)
    expect(testbed.dueTimes('foreign')).toHaveLength(1)
    expect(testbed.dueTimes('own')).toHaveLength(6)
    expect(history(testbed, 'foreign')).toEqual(['12:01:00 done', '12:02:00 skipped'])
    expect(testbed.agents.task('foreign')).toMatchObject({
      status: 'paused',
      next_run: '2026-01-15T12:03:00.000Z',
      last_result: 'The group that answers for it may not run tasks in this group any more.',
    })
  })

  test('a task whose creator is gone is paused', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'once', 'once', '2026-01-15T12:01:00Z', { group: 'family' }, 'main')
    testbed.store.transaction(transaction => {
      transaction.deleteGroup('main')
    })
    await testbed.time.pass(hour)
    expect(testbed.begun).toEqual([])
    expect(history(testbed, 'once')).toEqual(['12:01:00 skipped'])
    expect(testbed.agents.task('once')).toMatchObject({
      status: 'paused',
      next_run: '2026-01-15T12:01:00.000Z',
    })
  })

  test('a task whose group is missing is tried once, and not again every minute', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    testbed.store.transaction(transaction => {
      transaction.deleteGroup('family')
    })
    await testbed.time.pass(day)
    expect(history(testbed, 't')).toEqual(['12:01:00 skipped'])
    expect(testbed.time.sleeping()).toBe(0)
  })

  test('unregistering a group ends its tasks', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.ask('main', 'unregister_group', { jid: 'family@chat' })
    await testbed.time.pass(hour)
    expect(history(testbed, 't')).toEqual([])
  })
})

describe('after the host was down', () => {
  const down = async (missed: 'once' | 'skip', ms: number) => {
    const testbed = await bench({ missed })
    testbed.scheduler.start()
    await schedule(testbed, 'often', 'interval', '60000')
    await schedule(testbed, 'daily', 'cron', '0 13 * * *')
    await schedule(testbed, 'once', 'once', '2026-01-15T12:30:00Z')
    testbed.kill()
    testbed.time.jump(ms)
    testbed.revive()
    await testbed.time.pass(0)
    await testbed.time.pass(0)
    return testbed
  }

  test('what was missed runs once, however often it was due', async () => {
    const testbed = await down('once', 3 * day + 30_000)
    expect(history(testbed, 'often')).toEqual(['12:01:00 done'])
    expect(history(testbed, 'daily')).toEqual(['13:00:00 done'])
    expect(history(testbed, 'once')).toEqual(['12:30:00 done'])
    expect(testbed.agents.task('often')).toMatchObject({ next_run: '2026-01-18T12:01:00.000Z' })
    expect(testbed.agents.task('daily')).toMatchObject({ next_run: '2026-01-18T13:00:00.000Z' })
    await testbed.time.pass(30_000)
    expect(testbed.dueTimes('often')).toHaveLength(2)
  })

  test('what was missed is skipped if so configured, and said to be', async () => {
    const testbed = await down('skip', 3 * day + 30_000)
    expect(testbed.begun).toEqual([])
    expect(history(testbed, 'often')).toEqual(['12:01:00 skipped'])
    expect(testbed.agents.task('once')).toMatchObject({
      status: 'completed',
      last_result: 'Its time passed while the host was not running.',
    })
    await testbed.time.pass(30_000)
    expect(history(testbed, 'often').at(-1)).toBe('12:01:00 done')
  })

  test('a restart within a minute misses nothing', async () => {
    const testbed = await down('skip', minute + 10_000)
    expect(history(testbed, 'often')).toEqual(['12:01:00 done'])
  })

  test('a run that was cut short failed, and is not run twice', async () => {
    const testbed = await bench(held())
    testbed.scheduler.start()
    await schedule(testbed, 't', 'once', '2026-01-15T12:01:00Z')
    await testbed.time.pass(minute)
    testbed.kill()
    testbed.revive()
    await testbed.time.pass(day)
    expect(testbed.begun).toHaveLength(1)
    expect(testbed.agents.occurrences({})).toMatchObject([
      { status: 'failed', error: 'The host stopped during the run.' },
    ])
    expect(testbed.agents.task('t')).toMatchObject({
      last_run: '2026-01-15T12:01:00.000Z',
      last_result: 'Error: The host stopped during the run.',
    })
  })

  test('a host that is stopped in order waits for the runs it has begun', async () => {
    const { run, finish } = held()
    const testbed = await bench({ run })
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(minute)
    let stopped = false
    const over = testbed.scheduler.stop().then(() => {
      stopped = true
    })
    await testbed.time.pass(10 * minute)
    expect(stopped).toBe(false)
    finish({ status: 'failed', result: null, error: 'the host is stopping' })
    await over
    expect(history(testbed, 't')).toEqual(['12:01:00 failed'])
    expect(testbed.scheduler.runNow('t')).toMatchObject({ ok: false, error: { code: 'unavailable' } })
  })
})

describe('a clock', () => {
  test('that jumps ahead brings what was passed over once', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'often', 'interval', '60000')
    await schedule(testbed, 'hourly', 'cron', '0 * * * *')
    testbed.time.jump(5 * hour + 5000)
    await testbed.time.pass(minute)
    expect(testbed.dueTimes('often')).toEqual(['2026-01-15T12:01:00.000Z', '2026-01-15T17:01:00.000Z'])
    expect(testbed.dueTimes('hourly')).toEqual(['2026-01-15T13:00:00.000Z'])
    await testbed.time.pass(hour)
    expect(testbed.dueTimes('hourly')).toEqual(['2026-01-15T13:00:00.000Z', '2026-01-15T18:00:00.000Z'])
  })

  test('that is set back runs nothing twice, and forgets nothing', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 'hourly', 'cron', '0 * * * *')
    await testbed.time.pass(2 * hour + minute)
    expect(testbed.dueTimes('hourly')).toEqual(['2026-01-15T13:00:00.000Z', '2026-01-15T14:00:00.000Z'])
    testbed.time.jump(-90 * minute)
    // Half past twelve again: 13:00 and 14:00 have been.
    await testbed.time.pass(3 * hour)
    expect(testbed.dueTimes('hourly')).toEqual([
      '2026-01-15T13:00:00.000Z',
      '2026-01-15T14:00:00.000Z',
      '2026-01-15T15:00:00.000Z',
    ])
  })

  test('that ran years ahead and is put right does not silence anything until then', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    testbed.time.jump(3650 * day)
    await schedule(testbed, 'often', 'interval', '60000')
    await schedule(testbed, 'hourly', 'cron', '0 * * * *')
    await testbed.time.pass(2 * minute + 1)
    expect(testbed.begun).toHaveLength(2)
    testbed.time.jump(-3650 * day)
    await testbed.time.pass(hour)
    expect(testbed.dueTimes('hourly').at(-1)).toBe('2026-01-15T13:00:00.000Z')
    expect(testbed.dueTimes('often').length).toBeGreaterThan(55)
  })

  test('that was put right while the host was down is noticed at the start', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    testbed.time.jump(3650 * day)
    await schedule(testbed, 'often', 'interval', '60000')
    await testbed.time.pass(minute)
    testbed.kill()
    testbed.time.jump(-3650 * day)
    testbed.revive()
    await testbed.time.pass(3 * minute)
    expect(testbed.begun).toHaveLength(4)
  })

  test('in a zone with summer time shows each time of day once (Europe/Berlin, both changes)', async () => {
    const testbed = await bench({ start: '2026-03-28T12:00:00Z' })
    testbed.scheduler.start()
    const timezone = 'Europe/Berlin'
    await schedule(testbed, 'night', 'cron', '30 2 * * *', { timezone })
    await schedule(testbed, 'morning', 'cron', '0 9 * * *', { timezone })
    await testbed.time.pass(2 * day)
    // 02:30 does not exist on the 29th: it runs when the clock has jumped, at 03:00, and at 02:30 the day after.
    expect(testbed.dueTimes('night')).toEqual(['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'])
    expect(testbed.dueTimes('morning')).toEqual(['2026-03-29T07:00:00.000Z', '2026-03-30T07:00:00.000Z'])

    const autumn = await bench({ start: '2026-10-24T12:00:00Z' })
    autumn.scheduler.start()
    await schedule(autumn, 'night', 'cron', '30 2 * * *', { timezone })
    await schedule(autumn, 'hourly', 'cron', '0 * * * *', { timezone })
    await autumn.time.pass(2 * day)
    // 02:30 comes twice on the 25th and runs the first time; what runs every hour runs in both.
    expect(autumn.dueTimes('night')).toEqual(['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'])
    expect(autumn.dueTimes('hourly')).toHaveLength(48)
  })
})

describe('run now', () => {
  test('runs a task beside its schedule, also a paused one', async () => {
    const testbed = await bench()
    testbed.scheduler.start()
    await schedule(testbed, 't', 'interval', '60000')
    await testbed.time.pass(10_000)
    await testbed.ask('family', 'pause_task', { task_id: 't' })
    expect(testbed.scheduler.runNow('t')).toMatchObject({ ok: true, result: { task_id: 't' } })
    await testbed.time.pass(0)
    await testbed.time.pass(0)
    expect(testbed.agents.occurrences({})).toMatchObject([{ manual: true, status: 'done' }])
    expect(testbed.agents.task('t')).toMatchObject({ status: 'paused', next_run: '2026-01-15T12:01:00.000Z' })
  })

  test('says why not', async () => {
    const testbed = await bench(held())
    const code = (id: string) => {
      const outcome = testbed.scheduler.runNow(id)
      return outcome.ok ? 'done' : outcome.error.code
    }
    await schedule(testbed, 't', 'interval', '60000')
    await schedule(testbed, 'over', 'interval', '60000')
    await testbed.ask('family', 'cancel_task', { task_id: 'over' })
    expect(code('t')).toBe('unavailable')
    testbed.scheduler.start()
    expect(code('nobody')).toBe('not_found')
    expect(code('over')).toBe('wrong_state')
    expect(code('t')).toBe('done')
    expect(code('t')).toBe('wrong_state')
    await testbed.time.pass(0)
    expect(testbed.begun).toHaveLength(1)
    testbed.store.transaction(transaction => {
      transaction.deleteGroup('family')
    })
    expect(code('t')).toBe('forbidden')
  })
})

describe('failures', () => {
  test('of the disk is waited out', async () => {
    const testbed = await bench()
    await schedule(testbed, 't', 'once', '2026-01-15T12:01:00Z')
    let broken = true
    const { agents } = testbed.store
    const begun: string[] = []
    const scheduler = createScheduler({
      store: {
        ...testbed.store,
        agents: {
          ...agents,
          claimOccurrence(...claim) {
            if (broken) throw new StoreFailure('disk full')
            return agents.claimOccurrence(...claim)
          },
        },
      },
      config: { agents: { missed: 'once' } },
      log: pino({ level: 'silent' }),
      clock: testbed.time.clock,
      retries: createRetries({ log: pino({ level: 'silent' }), now: Date.now }),
      mayRun: () => undefined,
      async run(occurrence, _, begin) {
        begin('r')
        begun.push(occurrence.id)
        return { status: 'done', result: null, error: null }
      },
    })
    scheduler.start()
    await testbed.time.pass(3 * minute)
    expect(begun).toEqual([])
    broken = false
    await testbed.time.pass(minute)
    expect(begun).toHaveLength(1)
  })

  test('with one task pauses that one and leaves the others alone', async () => {
    const testbed = await bench()
    for (let i = 0; i < 30; i++) await schedule(testbed, `bad${i}`, 'interval', '60000')
    await schedule(testbed, 'good', 'interval', '60000')
    const begun: string[] = []
    const scheduler = createScheduler({
      store: testbed.store,
      config: { agents: { missed: 'once' } },
      log: pino({ level: 'silent' }),
      clock: testbed.time.clock,
      retries: createRetries({ log: pino({ level: 'silent' }), now: Date.now }),
      mayRun(task) {
        if (task.id.startsWith('bad')) throw new Error('a bug')
        return undefined
      },
      async run(_, task, begin) {
        begin('r')
        begun.push(task.id)
        return { status: 'done', result: null, error: null }
      },
    })
    scheduler.start()
    await testbed.time.pass(5 * minute)
    expect(new Set(begun)).toEqual(new Set(['good']))
    expect(begun).toHaveLength(5)
    expect(testbed.agents.task('bad0')).toMatchObject({ status: 'paused' })
  })
})
