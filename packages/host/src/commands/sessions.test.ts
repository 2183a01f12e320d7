import { describe, expect, test } from 'vitest'
import { createContexts } from '../guard/contexts.ts'
import { syncTraits } from '../plugins/worktrees/command.ts'
import type { Repo } from '../plugins/worktrees/settings.ts'
import { codeOf, openTestbed } from './testing.ts'
import type { CurrentRun, HostRules } from './types.ts'

const hostWith = (run: CurrentRun | undefined): HostRules => ({
  runOf: folder => (folder === 'family' ? run : undefined),
  workMs: () => undefined,
  finishing: () => undefined,
  isHarmless: () => false,
})
const scheduled: CurrentRun = { id: 'run-1', kind: 'task', occurrenceId: 'o-1', isByDeploy: false }

const guard = {
  containsSecrets: () => false,
  isOffline: () => false,
  approvalMs: 1000,
}

const open = async (rules: Parameters<typeof openTestbed>[0] = {}) => {
  const testbed = openTestbed(rules)
  await testbed.add({
    folder: 'family',
    jid: 'local:family',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
  })
  await testbed.add({ folder: 'work', jid: 'local:work', name: 'Work', main: false, dialect: 'hatchway' })
  return testbed
}
type Testbed = Awaited<ReturnType<typeof open>>

const said = (testbed: Testbed, text: string, status: 'waiting' | 'context', group = 'family') =>
  testbed.store.agents.receive({
    group,
    jid: `local:${group}`,
    channel: 'web',
    externalId: null,
    sender: 'anna',
    senderName: 'Anna',
    text,
    status,
    createdAt: 0,
  })
const waiting = (testbed: Testbed, group = 'family') =>
  testbed.store.agents.incoming({ group, status: 'waiting' }).map(({ text }) => text)

describe('reset_context', () => {
  test('forgets the session and what was said beside it, of the own group alone', async () => {
    using testbed = await open()
    for (const group of ['family', 'work']) {
      testbed.store.agents.setSession(group, 'session-1')
      said(testbed, 'by the way', 'context', group)
      said(testbed, 'a question', 'waiting', group)
    }
    const answer = await testbed.ask('family', 'reset_context', { message: 'go on' })
    expect(answer.outcome).toMatchObject({ ok: true })
    expect(answer.effects.map(({ kind }) => kind)).toEqual(['context_reset', 'session_over'])
    expect(testbed.store.agents.session('family')).toBeUndefined()
    expect(testbed.store.agents.incoming({ group: 'family', status: 'context' })).toEqual([])
    // Whoever is owed an answer gets it, and nothing is gone from the history.
    expect(waiting(testbed)).toEqual(['a question', 'go on'])
    expect(testbed.store.agents.incoming({ group: 'family' })).toHaveLength(3)
    expect(testbed.store.agents.session('work')).toBe('session-1')
    expect(waiting(testbed, 'work')).toEqual(['a question'])
  })

  test('forgets nothing of what was read: the files stay, and so does a message to the next session', async () => {
    using testbed = await open({ guard })
    const { store } = testbed
    const contexts = createContexts(store, guard)
    const taints = () => store.taints.all().map(({ context, corruptedBy }) => [context, corruptedBy])
    store.taints.add('family', 'session', { corrupted: true, secret: false }, 'mail', 1)
    await testbed.ask('family', 'reset_context', {})
    contexts.gone('family')
    expect(taints()).toEqual([['session', 'mail']])

    await testbed.ask('family', 'reset_context', { message: 'do as the mail says' })
    // The files are wiped, the message still waits.
    store.taints.clear('family', 'session')
    contexts.gone('family')
    const begin = () => contexts.begins('family', { taskId: null, shares: [] })
    const told = [
      ['carried', 'reset_context'],
      ['session', 'reset_context'],
    ]
    begin()
    expect(taints()).toEqual(told)
    // A run that ends without an answer leaves the message to the next one.
    contexts.gone('family')
    begin()
    expect(taints()).toEqual(told)
    const [message] = store.agents.incoming({ group: 'family', status: 'waiting' })
    store.agents.give([message?.id ?? 0], 'run-4')
    store.agents.use([message?.id ?? 0], 'run-4')
    contexts.gone('family')
    expect(taints()).toEqual([['session', 'reset_context']])
  })

  test('a run that only a deploy has called does not become another by calling itself', async () => {
    const run = { id: 'run-1', kind: 'chat', occurrenceId: null, isByDeploy: true } as const
    using testbed = await open({ host: hostWith(run) })
    const { effects } = await testbed.ask('family', 'reset_context', { message: 'deploy once more' })
    expect(testbed.store.agents.incoming({ group: 'family' })).toMatchObject([
      { channel: 'host', externalId: expect.stringMatching(/^deploy:/) },
    ])
    expect(effects).toContainEqual({ kind: 'session_over', folder: 'family', runId: 'run-1' })
  })

  test('an empty message starts nothing', async () => {
    using testbed = await open()
    await testbed.ask('family', 'reset_context', { message: '  ' })
    expect(waiting(testbed)).toEqual([])
  })
})

describe('finished_work', () => {
  const occurrence = {
    id: 'o-1',
    taskId: 't-1',
    group: 'family',
    dueAt: 0,
    manual: false,
    status: 'running',
    runId: 'run-1',
    claimedAt: 0,
    startedAt: 0,
    endedAt: null,
    result: null,
    error: null,
  } as const

  test('ends the own scheduled run, once', async () => {
    using testbed = await open({ host: hostWith(scheduled) })
    testbed.store.agents.insertOccurrence(occurrence)
    expect(codeOf(await testbed.ask('work', 'finished_work', {}))).toBe('wrong_state')
    expect(testbed.store.agents.occurrence('o-1')?.status).toBe('running')
    const answer = await testbed.ask('family', 'finished_work', {})
    expect(answer.outcome).toMatchObject({ ok: true, result: { run_id: 'run-1' } })
    expect(testbed.store.agents.occurrence('o-1')?.status).toBe('done')
    // How it ends after that no longer counts.
    testbed.store.agents.endOccurrence('o-1', { status: 'failed', result: null, error: 'killed', endedAt: 1 })
    expect(testbed.store.agents.occurrence('o-1')).toMatchObject({ status: 'done', error: null })
    expect(codeOf(await testbed.ask('family', 'finished_work', {}))).toBe('wrong_state')
    expect(
      testbed.store.audit.find({}, { below: null, span: 10, limit: 10 }).rows.map(({ action }) => action),
    ).toEqual(['finished_work'])
  })

  test.each([
    ['secret', { corrupted: false, secret: true }, true],
    ['corrupted', { corrupted: true, secret: false }, false],
  ])('is no way around the gate of a sync: a %s run is held', async (_, taint, pushes) => {
    const repo: Repo = {
      path: '/srv/site',
      branch: 'main',
      policy: 'merge',
      testMs: 1000,
      mergeAtEnd: true,
      ...(pushes ? { remote: 'origin' } : {}),
    }
    const host: HostRules = {
      ...hostWith(scheduled),
      finishing: () => ({ work: 'finished_work', traits: syncTraits({ name: 'site', repo }) }),
      workMs: () => 1000,
    }
    using testbed = await open({ host, guard, request: { seq: 7, reply: null } })
    testbed.store.transaction(transaction => transaction.addTaint('family', 'session', taint, 'mail', 1))
    const { effects } = await testbed.ask('family', 'finished_work', {})
    expect(effects).toMatchObject([
      { kind: 'request_stored', request: { kind: 'held', tool: 'finished_work' } },
    ])
  })

  test('what is allowed later does not end another run', async () => {
    using testbed = await open({ host: hostWith(scheduled), guard, isReleased: true, heldIn: 'run-0' })
    testbed.store.agents.insertOccurrence(occurrence)
    expect(codeOf(await testbed.ask('family', 'finished_work', {}))).toBe('wrong_state')
    expect(testbed.store.agents.occurrence('o-1')?.status).toBe('running')
  })

  test('a conversation is not finished so, and without agents there is nothing to finish', async () => {
    using testbed = await open({ host: hostWith({ ...scheduled, kind: 'chat', occurrenceId: null }) })
    expect(codeOf(await testbed.ask('family', 'finished_work', {}))).toBe('wrong_state')
    using bare = await open()
    expect(codeOf(await bare.ask('family', 'finished_work', {}))).toBe('unavailable')
  })
})
