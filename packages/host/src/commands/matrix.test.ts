import { type CommandType, commandTypes } from '@hatchway/protocol'
import { describe, expect, test } from 'vitest'
import { allCommands, codeOf, openTestbed } from './testing.ts'

/** Every command, aimed at the group `family`: by its chat, or by a task that it owns. */
const aimedAtFamily: Record<CommandType, object> = {
  send_message: { jid: 'family@chat', text: 'hello' },
  react: { jid: 'family@chat', emoji: '👍' },
  schedule_task: { jid: 'family@chat', prompt: 'water', schedule_type: 'interval', schedule_value: '60000' },
  update_task: { task_id: 'garden', prompt: 'weed' },
  pause_task: { task_id: 'garden' },
  resume_task: { task_id: 'garden' },
  cancel_task: { task_id: 'garden' },
  register_group: { jid: 'new@chat', name: 'New', folder: 'new' },
  unregister_group: { jid: 'family@chat' },
  refresh_groups: {},
  show_withheld: {},
  schedule_host_job: { name: 'job', command: 'true', schedule_type: 'interval', schedule_value: '60000' },
  create_periodic_agent: { name: 'agent', schedule: '@daily', prompt: 'look' },
  deploy: {},
  reset_context: {},
  finished_work: {},
  sync_worktree: {},
  call_service: { tool: 'list_calendars', arguments: {} },
  ask_user: { questions: [{ question: 'Yes?' }] },
  cancel_request: { request_id: 'r-1' },
  check_shell: { command: 'true' },
}

type Row = Record<'main' | 'family' | 'work' | 'operator', string>
const shared: Row = { main: 'done', family: 'done', work: 'forbidden', operator: 'done' }
const mainOnly: Row = { main: 'done', family: 'forbidden', work: 'forbidden', operator: 'done' }
const mainOnlyLater: Row = { ...mainOnly, main: 'unavailable', operator: 'unavailable' }
/** These name nobody: each group's own command acts on the group itself. */
const later: Row = {
  main: 'unavailable',
  family: 'unavailable',
  work: 'unavailable',
  operator: 'unavailable',
}

const expected: Record<CommandType, Row> = {
  send_message: shared,
  react: shared,
  schedule_task: shared,
  update_task: shared,
  pause_task: shared,
  resume_task: shared,
  cancel_task: shared,
  register_group: mainOnly,
  unregister_group: mainOnly,
  refresh_groups: mainOnly,
  show_withheld: { main: 'done', family: 'done', work: 'done', operator: 'forbidden' },
  schedule_host_job: mainOnlyLater,
  create_periodic_agent: mainOnlyLater,
  deploy: mainOnlyLater,
  reset_context: { main: 'done', family: 'done', work: 'done', operator: 'invalid_field' },
  finished_work: { ...later, operator: 'invalid_field' },
  sync_worktree: later,
  call_service: { ...later, operator: 'forbidden' },
  ask_user: later,
  cancel_request: { main: 'not_found', family: 'not_found', work: 'not_found', operator: 'forbidden' },
  check_shell: later,
}

const openTown = async () => {
  const testbed = openTestbed()
  const base = { name: 'A group', dialect: 'hatchway', main: false } as const
  await testbed.add({ ...base, folder: 'main', jid: 'main@chat', main: true })
  await testbed.add({ ...base, folder: 'family', jid: 'family@chat' })
  await testbed.add({ ...base, folder: 'work', jid: 'work@chat' })
  await testbed.ask('family', 'schedule_task', {
    task_id: 'garden',
    prompt: 'water',
    schedule_type: 'interval',
    schedule_value: '60000',
  })
  return testbed
}

const contents = ({ store }: Awaited<ReturnType<typeof openTown>>) =>
  structuredClone({ groups: store.groups(), tasks: store.tasks({}), messages: store.messages({}) })

test('every command has an operation of its own name', () => {
  using testbed = openTestbed()
  expect(
    allCommands(testbed.store)
      .map(({ type }) => type)
      .toSorted(),
  ).toEqual(commandTypes.toSorted())
})

describe.each(commandTypes)('%s', type => {
  test.each(Object.entries(expected[type]))('by %s', async (who, code) => {
    using testbed = await openTown()
    const before = contents(testbed)

    const answer = await testbed.ask(who, type, aimedAtFamily[type])

    expect(codeOf(answer)).toBe(code)
    if (code !== 'done') {
      expect(contents(testbed)).toEqual(before)
      expect(answer.effects).toEqual([])
    }
  })
})

test.each(['send_message', 'react', 'schedule_task'] as const)(
  '%s without a target acts on the own group, and an operator must name one',
  async type => {
    using testbed = await openTown()
    const payload = { ...aimedAtFamily[type], jid: undefined }
    expect(codeOf(await testbed.ask('main', type, payload))).toBe('done')
    expect(codeOf(await testbed.ask('work', type, payload))).toBe('done')
    expect(codeOf(await testbed.ask('operator', type, payload))).toBe('invalid_field')
    const jids = [...testbed.store.messages({}), ...testbed.store.tasks({})].map(({ jid }) => jid)
    expect(jids.filter(jid => jid !== 'family@chat')).toEqual(['main@chat', 'work@chat'])
  },
)

test('whether a chat or a folder exists is nobody’s business but main’s', async () => {
  using testbed = await openTown()
  const task = { prompt: 'look', schedule_type: 'interval', schedule_value: '60000' }
  for (const target of [
    { jid: 'nobody@chat' },
    { group: 'nobody' },
    { group: 'Work' },
    { group: 'work-x' },
  ]) {
    expect(codeOf(await testbed.ask('work', 'schedule_task', { ...task, ...target }))).toBe('forbidden')
  }
  expect(codeOf(await testbed.ask('main', 'schedule_task', { ...task, jid: 'nobody@chat' }))).toBe(
    'not_found',
  )
  expect(codeOf(await testbed.ask('main', 'schedule_task', { ...task, group: 'nobody' }))).toBe('not_found')
  expect(codeOf(await testbed.ask('work', 'unregister_group', { jid: 'nobody@chat' }))).toBe('forbidden')
})

test('rights end with the registration that gave them', async () => {
  using testbed = await openTown()
  await testbed.ask('operator', 'unregister_group', { jid: 'main@chat' })
  await testbed.add({
    folder: 'main',
    jid: 'main@chat',
    name: 'Not main any more',
    main: false,
    dialect: 'hatchway',
  })
  expect(codeOf(await testbed.ask('main', 'refresh_groups', {}))).toBe('forbidden')
  expect(codeOf(await testbed.ask('main', 'cancel_task', { task_id: 'garden' }))).toBe('forbidden')
})
