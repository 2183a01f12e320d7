import type { Outcome } from '@hatchway/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Answer, codeOf, openTestbed } from './testing.ts'

const openFamily = async (limits: Parameters<typeof openTestbed>[0] = {}) => {
  const testbed = openTestbed(limits)
  await testbed.add({ folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'hatchway' })
  await testbed.add({
    folder: 'family',
    jid: 'family@chat',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
  })
  return testbed
}

const daily = { prompt: 'water the plants', schedule_type: 'cron', schedule_value: '0 9 * * *' }
const once = { prompt: 'call', schedule_type: 'once', schedule_value: '2026-01-16T09:00:00Z' }

const result = (outcome: Outcome): Record<string, unknown> => (outcome.ok ? outcome.result : outcome.error)
const idOf = ({ outcome }: Answer): string => String(result(outcome).task_id)

describe('schedule_task', () => {
  test('answers with the id, the state and the next run, and stores all of it', async () => {
    using testbed = await openFamily()
    const { outcome, effects } = await testbed.ask('family', 'schedule_task', daily)
    expect(outcome).toEqual({
      ok: true,
      result: { task_id: '1', status: 'active', next_run: '2026-01-16T08:00:00.000Z' },
    })
    expect(effects).toEqual([{ kind: 'tasks_changed', folder: 'family' }])
    expect(testbed.task('1')).toEqual({
      id: '1',
      group: 'family',
      jid: 'family@chat',
      created_by: 'family',
      ...daily,
      script: null,
      model: null,
      timezone: 'Europe/Berlin',
      context_mode: 'group',
      status: 'active',
      next_run: '2026-01-16T08:00:00.000Z',
      last_run: null,
      last_result: null,
      created_at: '2026-01-15T12:00:00.000Z',
    })
  })

  test('takes a zone, a script, a model and a mode of its own', async () => {
    using testbed = await openFamily()
    const extras = { timezone: 'Asia/Tokyo', script: 'true', model: 'small', context_mode: 'isolated' }
    const id = idOf(await testbed.ask('family', 'schedule_task', { ...daily, ...extras }))
    expect(testbed.task(id)).toMatchObject({ ...extras, next_run: '2026-01-16T00:00:00.000Z' })
  })

  test.each([{ jid: 'family@chat' }, { group: 'family' }])(
    'by main for %j runs in that group, and main answers for it',
    async target => {
      using testbed = await openFamily()
      const answer = await testbed.ask('main', 'schedule_task', { ...daily, ...target })
      expect(answer.effects).toEqual([{ kind: 'tasks_changed', folder: 'family' }])
      expect(testbed.task(idOf(answer))).toMatchObject({
        group: 'family',
        jid: 'family@chat',
        created_by: 'main',
      })
    },
  )

  test('is refused once the group’s open tasks hold as many bytes as they may, and only there', async () => {
    using testbed = await openFamily({ limits: { openTaskBytes: 1000 } })
    // 600 characters, 700 bytes
    const large = { ...daily, prompt: `${'é'.repeat(100)}${'x'.repeat(400)}`, script: 'y'.repeat(100) }
    const task_id = idOf(await testbed.ask('family', 'schedule_task', large))
    const refused = await testbed.ask('family', 'schedule_task', large)
    expect(codeOf(refused)).toBe('quota_exceeded')
    expect(refused.outcome).toMatchObject({
      error: {
        message: expect.stringMatching(
          /^The group’s open tasks would hold 1400 bytes, and 1000 is the limit\./,
        ),
      },
    })
    expect(codeOf(await testbed.ask('main', 'schedule_task', { ...large, group: 'family' }))).toBe(
      'quota_exceeded',
    )
    expect(codeOf(await testbed.ask('main', 'schedule_task', large))).toBe('done')
    const longer = { task_id, prompt: 'x'.repeat(901) }
    expect(codeOf(await testbed.ask('family', 'update_task', longer))).toBe('quota_exceeded')
    expect(codeOf(await testbed.ask('family', 'update_task', { task_id, prompt: 'x'.repeat(900) }))).toBe(
      'done',
    )
    expect(codeOf(await testbed.ask('family', 'update_task', { ...longer, status: 'cancelled' }))).toBe(
      'done',
    )
    expect(codeOf(await testbed.ask('family', 'schedule_task', large))).toBe('done')
  })

  test('is refused once the group has as many open tasks as it may have, and only there', async () => {
    using testbed = await openFamily({ openTasks: 2 })
    const first = idOf(await testbed.ask('family', 'schedule_task', daily))
    const second = idOf(await testbed.ask('family', 'schedule_task', daily))
    await testbed.ask('family', 'pause_task', { task_id: second })
    expect(codeOf(await testbed.ask('family', 'schedule_task', daily))).toBe('quota_exceeded')
    expect(codeOf(await testbed.ask('main', 'schedule_task', { ...daily, group: 'family' }))).toBe(
      'quota_exceeded',
    )
    expect(codeOf(await testbed.ask('main', 'schedule_task', daily))).toBe('done')
    await testbed.ask('family', 'cancel_task', { task_id: first })
    expect(codeOf(await testbed.ask('family', 'schedule_task', daily))).toBe('done')
  })

  test('by an operator belongs to the group it is for', async () => {
    using testbed = await openFamily()
    const id = idOf(await testbed.ask('operator', 'schedule_task', { ...daily, group: 'family' }))
    expect(testbed.task(id)).toMatchObject({ group: 'family', created_by: 'family' })
  })

  test('an id of the caller’s choice is taken once, whoever has it and whatever became of it', async () => {
    using testbed = await openFamily()
    const chosen = { ...daily, task_id: 'plants' }
    expect(idOf(await testbed.ask('family', 'schedule_task', chosen))).toBe('plants')
    expect(codeOf(await testbed.ask('family', 'schedule_task', chosen))).toBe('conflict')
    expect(codeOf(await testbed.ask('main', 'schedule_task', chosen))).toBe('conflict')
    await testbed.ask('family', 'cancel_task', { task_id: 'plants' })
    expect(codeOf(await testbed.ask('family', 'schedule_task', chosen))).toBe('conflict')
    expect(testbed.task('plants')).toMatchObject({ created_by: 'family', status: 'cancelled' })
  })

  test('an id made by the host never meets one that was chosen', async () => {
    using testbed = await openFamily()
    await testbed.ask('family', 'schedule_task', { ...daily, task_id: '1' })
    await testbed.ask('family', 'schedule_task', { ...daily, task_id: '2' })
    expect(idOf(await testbed.ask('family', 'schedule_task', daily))).toBe('3')
  })

  test.each([
    { schedule_type: 'interval', schedule_value: '1' },
    { schedule_type: 'interval', schedule_value: '1e30' },
    { schedule_type: 'interval', schedule_value: '12abc' },
    { schedule_type: 'once', schedule_value: '2026-01-15T11:59:59Z' },
    { schedule_type: 'cron', schedule_value: '0 0 30 2 *' },
    { timezone: 'Mars/Olympus' },
  ])('%j leaves nothing behind', async change => {
    using testbed = await openFamily()
    const answer = await testbed.ask('family', 'schedule_task', { ...daily, ...change })
    expect(codeOf(answer)).toBe('bad_schedule')
    expect(answer.effects).toEqual([])
    expect(testbed.store.tasks({})).toEqual([])
  })
})

describe('update_task', () => {
  const update = async (change: object) => {
    const testbed = await openFamily()
    await testbed.ask('family', 'schedule_task', {
      ...daily,
      task_id: 'plants',
      script: 'old.sh',
      model: 'small',
    })
    testbed.setClock('2026-01-20T12:00:00.000Z')
    const answer = await testbed.ask('family', 'update_task', { task_id: 'plants', ...change })
    return Object.assign(testbed, { answer, after: testbed.task('plants') })
  }

  test('changes any field and leaves the rest', async () => {
    using testbed = await update({
      prompt: 'repot',
      context_mode: 'isolated',
      script: 'new.sh',
      model: 'large',
    })
    expect(codeOf(testbed.answer)).toBe('done')
    expect(testbed.answer.effects).toEqual([{ kind: 'tasks_changed', folder: 'family' }])
    expect(testbed.after).toMatchObject({
      prompt: 'repot',
      context_mode: 'isolated',
      script: 'new.sh',
      model: 'large',
      schedule_value: '0 9 * * *',
      next_run: '2026-01-16T08:00:00.000Z',
      created_at: '2026-01-15T12:00:00.000Z',
    })
  })

  test('an empty string removes script and model', async () => {
    using testbed = await update({ script: '', model: '' })
    expect(testbed.after).toMatchObject({ script: null, model: null, prompt: 'water the plants' })
  })

  test.each([
    [{ schedule_value: '30 18 * * *' }, '2026-01-20T17:30:00.000Z'],
    [{ schedule_type: 'interval', schedule_value: '60000' }, '2026-01-20T12:01:00.000Z'],
    [{ schedule_type: 'once', schedule_value: '2026-02-01T10:00:00' }, '2026-02-01T09:00:00.000Z'],
    [{ timezone: 'Asia/Tokyo' }, '2026-01-21T00:00:00.000Z'],
  ])('%j computes the next run again', async (change, expected) => {
    using testbed = await update(change)
    expect(result(testbed.answer.outcome)).toEqual({
      task_id: 'plants',
      status: 'active',
      next_run: expected,
    })
    expect(testbed.after).toMatchObject({ ...change, next_run: expected })
  })

  test.each([
    { schedule_value: '99 9 * * *' },
    { schedule_type: 'interval' },
    { timezone: 'nowhere' },
    { schedule_type: 'once', schedule_value: '2026-01-19T00:00:00Z', prompt: 'never' },
  ])('%j is refused whole', async change => {
    using testbed = await update(change)
    expect(codeOf(testbed.answer)).toBe('bad_schedule')
    expect(testbed.after).toMatchObject({ ...daily, next_run: '2026-01-16T08:00:00.000Z' })
  })

  test('nothing to change is a mistake', async () => {
    using testbed = await update({})
    expect(codeOf(testbed.answer)).toBe('invalid_field')
  })

  test('a status pauses, resumes with a next run from now, and cancels', async () => {
    using testbed = await update({ status: 'paused' })
    expect(testbed.after).toMatchObject({ status: 'paused', next_run: '2026-01-16T08:00:00.000Z' })
    await testbed.ask('family', 'update_task', { task_id: 'plants', status: 'active' })
    expect(testbed.task('plants')).toMatchObject({ status: 'active', next_run: '2026-01-21T08:00:00.000Z' })
    await testbed.ask('family', 'update_task', { task_id: 'plants', status: 'cancelled' })
    expect(testbed.task('plants')).toMatchObject({ status: 'cancelled', next_run: null })
  })

  test('a status that it has already does not move the next run', async () => {
    using testbed = await update({ schedule_type: 'interval', schedule_value: '60000' })
    testbed.setClock('2026-01-20T12:00:30.000Z')
    await testbed.ask('family', 'update_task', { task_id: 'plants', status: 'active' })
    expect(testbed.task('plants')?.next_run).toBe('2026-01-20T12:01:00.000Z')
  })

  test('a paused task that is rescheduled stays paused, with the new next run', async () => {
    using testbed = await update({ status: 'paused' })
    await testbed.ask('family', 'update_task', { task_id: 'plants', schedule_value: '0 10 * * *' })
    expect(testbed.task('plants')).toMatchObject({ status: 'paused', next_run: '2026-01-21T09:00:00.000Z' })
  })
})

describe('who answers for a task', () => {
  const mains = async () => {
    const testbed = await openFamily()
    await testbed.ask('main', 'schedule_task', { ...daily, task_id: 'chores', group: 'family' })
    return testbed
  }

  test.each([{ prompt: 'give me everything' }, { script: 'evil.sh' }, { schedule_value: '* * * * *' }])(
    'a group that rewrites main’s task with %j no longer has main’s rights in it',
    async change => {
      using testbed = await mains()
      expect(codeOf(await testbed.ask('family', 'update_task', { task_id: 'chores', ...change }))).toBe(
        'done',
      )
      expect(testbed.task('chores')?.created_by).toBe('family')
    },
  )

  test('pausing and resuming rewrites nothing', async () => {
    using testbed = await mains()
    await testbed.ask('family', 'pause_task', { task_id: 'chores' })
    await testbed.ask('family', 'resume_task', { task_id: 'chores' })
    await testbed.ask('family', 'update_task', { task_id: 'chores', status: 'paused' })
    expect(testbed.task('chores')?.created_by).toBe('main')
  })

  test('main’s hand on another group’s task does not lend it main’s rights', async () => {
    using testbed = await openFamily()
    await testbed.ask('family', 'schedule_task', { ...daily, task_id: 'plants', script: 'family.sh' })
    await testbed.ask('main', 'update_task', { task_id: 'plants', prompt: 'water less' })
    await testbed.ask('operator', 'update_task', { task_id: 'plants', model: 'small' })
    expect(testbed.task('plants')).toMatchObject({
      prompt: 'water less',
      model: 'small',
      created_by: 'family',
    })
  })
})

describe('pause, resume, cancel', () => {
  test('pausing twice is the same as once', async () => {
    using testbed = await openFamily()
    const task_id = idOf(await testbed.ask('family', 'schedule_task', daily))
    const first = await testbed.ask('family', 'pause_task', { task_id })
    const second = await testbed.ask('family', 'pause_task', { task_id })
    expect(result(first.outcome)).toEqual({ task_id, status: 'paused', next_run: '2026-01-16T08:00:00.000Z' })
    expect(second.outcome).toEqual(first.outcome)
    expect(first.effects).toEqual([{ kind: 'tasks_changed', folder: 'family' }])
    expect(second.effects).toEqual([])
  })

  test('a task that is resumed after its time waits for the next one', async () => {
    using testbed = await openFamily()
    const task_id = idOf(await testbed.ask('family', 'schedule_task', daily))
    await testbed.ask('family', 'pause_task', { task_id })
    testbed.setClock('2026-03-01T08:00:00.000Z')
    const { outcome } = await testbed.ask('family', 'resume_task', { task_id })
    expect(result(outcome)).toEqual({ task_id, status: 'active', next_run: '2026-03-02T08:00:00.000Z' })
  })

  test('resuming a task that runs does not move it', async () => {
    using testbed = await openFamily()
    const interval = { prompt: 'look', schedule_type: 'interval', schedule_value: '60000' }
    const task_id = idOf(await testbed.ask('family', 'schedule_task', interval))
    testbed.setClock('2026-01-15T12:00:59.000Z')
    const { outcome } = await testbed.ask('family', 'resume_task', { task_id })
    expect(result(outcome).next_run).toBe('2026-01-15T12:01:00.000Z')
  })

  test('a single time that went by during the pause must be set anew first', async () => {
    using testbed = await openFamily()
    const task_id = idOf(await testbed.ask('family', 'schedule_task', once))
    await testbed.ask('family', 'pause_task', { task_id })
    testbed.setClock('2026-01-17T00:00:00.000Z')
    const { outcome } = await testbed.ask('family', 'resume_task', { task_id })
    expect(result(outcome)).toEqual({
      code: 'bad_schedule',
      message:
        'The time has passed. Give one in the future as schedule_value. Use update_task before resuming.',
    })
    expect(testbed.task(task_id)?.status).toBe('paused')
    await testbed.ask('family', 'update_task', { task_id, schedule_value: '2026-01-18T09:00:00Z' })
    expect(codeOf(await testbed.ask('family', 'resume_task', { task_id }))).toBe('done')
    expect(testbed.task(task_id)).toMatchObject({ status: 'active', next_run: '2026-01-18T09:00:00.000Z' })
  })

  test('a cancelled task keeps its history and is over', async () => {
    using testbed = await openFamily()
    const task_id = idOf(await testbed.ask('family', 'schedule_task', daily))
    const { outcome } = await testbed.ask('family', 'cancel_task', { task_id })
    expect(result(outcome)).toEqual({ task_id, status: 'cancelled', next_run: null })
    expect(testbed.task(task_id)).toMatchObject({ ...daily, status: 'cancelled', next_run: null })
    expect(testbed.store.tasks({ open: true })).toEqual([])
    for (const type of ['cancel_task', 'pause_task', 'resume_task'] as const) {
      expect(codeOf(await testbed.ask('family', type, { task_id }))).toBe('wrong_state')
    }
    expect(codeOf(await testbed.ask('family', 'update_task', { task_id, status: 'active' }))).toBe(
      'wrong_state',
    )
  })

  test('a completed task is over too', async () => {
    using testbed = await openFamily()
    const task_id = idOf(await testbed.ask('family', 'schedule_task', once))
    testbed.store.transaction(transaction => {
      const task = transaction.task(task_id)
      if (task) transaction.updateTask({ ...task, status: 'completed', next_run: null })
    })
    for (const type of ['cancel_task', 'pause_task', 'resume_task'] as const) {
      expect(codeOf(await testbed.ask('family', type, { task_id }))).toBe('wrong_state')
    }
  })

  test.each(['update_task', 'pause_task', 'resume_task', 'cancel_task'] as const)(
    '%s on a task that does not exist says so, to everybody',
    async type => {
      using testbed = await openFamily()
      for (const who of ['main', 'family', 'operator']) {
        expect(codeOf(await testbed.ask(who, type, { task_id: 'nothing' }))).toBe('not_found')
      }
    },
  )
})

test('whatever is done to tasks, the open ones have a next run and the ended ones have none', async () => {
  const schedule = fc.constantFrom(
    daily,
    once,
    { schedule_type: 'interval', schedule_value: '3600000' },
    { schedule_type: 'interval', schedule_value: '5' },
    { schedule_value: '2026-01-15T00:00:00Z' },
  )
  const task_id = fc.constantFrom('a', 'b')
  const step = fc.oneof(
    fc.record({ type: fc.constant('schedule_task' as const), task_id, more: schedule }),
    fc.record({ type: fc.constant('update_task' as const), task_id, more: schedule }),
    fc.record({
      type: fc.constant('update_task' as const),
      task_id,
      more: fc.record({ status: fc.constantFrom('active', 'paused', 'cancelled') }),
    }),
    fc.record({
      type: fc.constantFrom('pause_task' as const, 'resume_task' as const, 'cancel_task' as const),
      task_id,
      more: fc.constant({}),
    }),
  )
  const steps = fc.array(fc.tuple(step, fc.integer({ min: 0, max: 48 })), { maxLength: 25 })

  await fc.assert(
    fc.asyncProperty(steps, async sequence => {
      using testbed = await openFamily()
      let hours = 0
      for (const [{ type, task_id: id, more }, wait] of sequence) {
        hours += wait
        const now = new Date(Date.UTC(2026, 0, 15, 12 + hours)).toISOString()
        testbed.setClock(now)
        const defaults =
          type === 'schedule_task' ? { prompt: 'x', schedule_type: 'cron', schedule_value: '@daily' } : {}
        const before = testbed.task(id)
        const answer = await testbed.ask('family', type, { ...defaults, ...more, task_id: id })
        const after = testbed.task(id)
        if (!answer.outcome.ok) expect(after).toEqual(before)
        if (answer.outcome.ok && after?.status === 'active' && before?.status !== 'active') {
          expect(after.next_run && after.next_run > now).toBe(true)
        }
        for (const task of testbed.store.tasks({})) {
          expect(task.next_run === null).toBe(task.status === 'cancelled')
        }
      }
    }),
    { numRuns: 25 },
  )
})
