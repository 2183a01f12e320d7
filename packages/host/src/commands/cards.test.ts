import { type CommandType, commandTypes, payloads } from '@hatchway/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { syncTraits } from '../plugins/worktrees/command.ts'
import type { Repo } from '../plugins/worktrees/settings.ts'
import { openTestbed } from './testing.ts'
import type { HostRules } from './types.ts'

/**
 * What people are shown of a command that is held. Every field that the command has is among it, and what the host adds
 * by itself. A new command has to be put into one of these two lists, and a new field into the example of its command.
 */
const task = { prompt: 'water the plants', schedule_type: 'cron', schedule_value: '0 9 * * *' }
const job = { name: 'backup', command: 'tar c .', cwd: '/srv', user: 'ann', timeout_seconds: 77 }

interface Guarded {
  payload: Record<string, unknown>
  adds?: Record<string, unknown>
}

const guarded: Partial<Record<CommandType, Guarded>> = {
  send_message: {
    payload: {
      jid: 'chat:family',
      text: 'hello',
      sender: 'Clerk',
      speech: { text: 'aloud', title: 'News' },
      attachments: [{ path: 'a.txt', name: 'b.txt' }],
    },
  },
  react: { payload: { jid: 'chat:family', emoji: '👍', message_id: 'm-1' } },
  schedule_task: {
    payload: {
      ...task,
      jid: 'chat:family',
      context_mode: 'isolated',
      script: 'true',
      model: 'large',
      task_id: 't-9',
      timezone: 'Asia/Tokyo',
    },
    adds: { group: 'family' },
  },
  update_task: {
    payload: {
      task_id: 't-1',
      prompt: 'do not',
      schedule_type: 'interval',
      schedule_value: '3600000',
      context_mode: 'isolated',
      script: 'true',
      model: 'large',
      timezone: 'Asia/Tokyo',
      status: 'active',
    },
    adds: { group: 'family', now: { prompt: 'water the plants', schedule_value: '0 9 * * *' } },
  },
  resume_task: { payload: { task_id: 'job-1' }, adds: { ...job, now: { schedule_value: '0 9 * * *' } } },
  register_group: {
    payload: {
      jid: 'chat:new',
      name: 'New',
      folder: 'new',
      trigger: '@x',
      requires_trigger: false,
      channel: 'web',
    },
    adds: { chat: 'chat:new', dialect: 'nanoclaw' },
  },
  unregister_group: { payload: { jid: 'chat:family' }, adds: { folder: 'family', name: 'The family' } },
  schedule_host_job: {
    payload: { ...job, schedule_type: 'cron', schedule_value: '0 3 * * *', timezone: 'Asia/Tokyo' },
  },
  create_periodic_agent: {
    payload: {
      name: 'News',
      schedule: '0 7 * * *',
      prompt: 'read',
      instructions: 'be kind',
      jid: 'chat:news',
      context_mode: 'isolated',
    },
    adds: { chat: 'chat:news', folder: 'news', timezone: 'Europe/Berlin' },
  },
  deploy: { payload: { rebuild: true, resume_prompt: 'go on', head: 'abc', session_id: 's-1' } },
  sync_worktree: { payload: {}, adds: { repo: 'site', branch: 'main', policy: 'merge', push_to: 'origin' } },
  finished_work: { payload: {}, adds: { repo: 'site', branch: 'main', policy: 'merge', push_to: 'origin' } },
  check_shell: { payload: { command: 'curl example.org' } },
}
/** They stay within the group, or end something; and what services are given is theirs to name. */
const others: readonly CommandType[] = [
  ...([
    'pause_task',
    'cancel_task',
    'refresh_groups',
    'reset_context',
    'ask_user',
    'cancel_request',
  ] as const),
  'call_service',
  'show_withheld',
]

const repo: Repo = {
  path: '/srv/site',
  branch: 'main',
  policy: 'merge',
  remote: 'origin',
  testMs: 1000,
  mergeAtEnd: true,
}
const repository = { name: 'site', repo }
const host: HostRules = {
  runOf: () => ({ id: 'run-1', kind: 'task', occurrenceId: 'o-1', isByDeploy: false }),
  workMs: () => 1000,
  finishing: () => ({ work: 'finished_work', traits: syncTraits(repository) }),
  isHarmless: () => false,
}
const guard = {
  contextOf: () => 'session',
  containsSecrets: () => true,
  isOffline: () => false,
  approvalMs: 1000,
}

test('every command is in one of the lists', () => {
  expect([...Object.keys(guarded), ...others].sort()).toEqual([...commandTypes].sort())
})

/** Every field of a payload, and of what is within it: `speech.title`. */
function fieldsOf(schema: z.ZodType): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return fieldsOf(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodArray) return fieldsOf(schema.element as z.ZodType)
  if (!(schema instanceof z.ZodObject)) return []
  return Object.entries<z.ZodType>(schema.shape).flatMap(([name, inner]) => [
    name,
    ...fieldsOf(inner).map(below => `${name}.${below}`),
  ])
}
const isIn = (value: unknown, path: readonly string[]): boolean => {
  const [name, ...rest] = path
  if (name === undefined) return true
  if (Array.isArray(value)) return value.some(each => isIn(each, path))
  return typeof value === 'object' && value !== null && name in value && isIn(value[name as never], rest)
}

test('the example of every held command has all fields that the command can have', () => {
  const missing = Object.entries(guarded).flatMap(([type, { payload }]) =>
    fieldsOf(payloads[type as CommandType])
      .filter(field => !isIn(payload, field.split('.')))
      .map(field => `${type}.${field}`),
  )
  expect(missing).toEqual([
    // It is refused in every chat but the own one, where nothing is held.
    'send_message.reply_to',
    // It cannot stand beside `jid`, whose group is shown in its place.
    'schedule_task.group',
    // With it, the command is refused whatever people say.
    'register_group.mounts_requested',
  ])
})

/** The request that is stored when main asks for this and a person has to decide. */
async function hold(type: CommandType, payload: Record<string, unknown>): Promise<unknown> {
  using testbed = openTestbed({
    host,
    guard,
    request: { seq: 1, reply: null },
    repositoryOf: () => repository,
    jobs: { settle: settled => settled },
  })
  await testbed.add({ folder: 'main', jid: 'chat:main', name: 'Main', main: true, dialect: 'nanoclaw' })
  await testbed.add({
    folder: 'family',
    jid: 'chat:family',
    name: 'The family',
    main: false,
    dialect: 'hatchway',
  })
  await testbed.ask('operator', 'schedule_task', { ...task, group: 'family', task_id: 't-1' })
  testbed.store.transaction(transaction => {
    const made = transaction.task('t-1')
    if (made) transaction.insertTask({ ...made, id: 'job-1', group: 'main', status: 'paused', job })
    transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', 0)
  })
  const { effects } = await testbed.ask('main', type, payload)
  return effects.flatMap(effect => (effect.kind === 'request_stored' ? [effect.request] : []))[0]
}
const showing = (payload: Record<string, unknown>) => ({ kind: 'held', input: { action: { payload } } })

for (const [type, { payload, adds = {} }] of Object.entries(guarded)) {
  test(`all that ${type} would do is shown`, async () => {
    const { jid, ...rest } = payload
    const shown = { ...rest, ...(jid === undefined || 'chat' in adds ? {} : { jid }), ...adds }
    expect(await hold(type as CommandType, payload)).toMatchObject(showing(shown))
  })
}

test('what is left out is shown as the host would take it', async () => {
  const zone = { timezone: 'Europe/Berlin' }
  const hostJob = { ...job, schedule_type: 'cron', schedule_value: '0 3 * * *' }
  expect(await hold('schedule_host_job', hostJob)).toMatchObject(showing(zone))
  const foreignTask = { ...task, jid: 'chat:family' }
  expect(await hold('schedule_task', foreignTask)).toMatchObject(showing({ ...zone, context_mode: 'group' }))
})

test('an address is kept in one form, and one with what nobody sees is none', async () => {
  using testbed = openTestbed({})
  const group = { name: 'Main', main: true, dialect: 'hatchway' } as const
  await testbed.add({ ...group, folder: 'main', jid: 'chat:main' })
  const register = (jid: string, folder: string) =>
    testbed.ask('main', 'register_group', { jid, name: folder, folder })
  expect((await register('chat:cafe\u0301', 'cafe')).outcome).toMatchObject({ ok: true })
  expect(testbed.group('cafe')?.jid).toBe('chat:caf\u00e9')
  // In whichever form, it is that chat.
  expect((await register('chat:cafe\u0301', 'other')).outcome).toMatchObject({ error: { code: 'conflict' } })
  await testbed.ask('main', 'send_message', { jid: 'chat:cafe\u0301', text: 'hello' })
  expect(testbed.store.messages({}).map(({ jid }) => jid)).toEqual(['chat:caf\u00e9'])
  for (const hidden of ['\u200b', '\u202e', '\u2060', '\u00ad', '\u3164', '\u2800', '\u{e0041}', '\ufe0f']) {
    const jid = `chat:ma${hidden}in`
    const refused = {
      ok: false,
      error: { code: 'invalid_field', message: expect.stringContaining('nobody sees') },
    }
    expect((await register(jid, 'hidden')).outcome).toMatchObject(refused)
    expect((await testbed.ask('main', 'send_message', { jid, text: 'x' })).outcome).toMatchObject(refused)
    expect((await testbed.add({ ...group, main: false, folder: 'hidden', jid })).outcome).toMatchObject(
      refused,
    )
  }
})

test('addresses from before that rule go on', async () => {
  using testbed = openTestbed({})
  const old = ['chat:o\u0308ld', 'chat:ma\u200bin']
  await testbed.add({ folder: 'model', jid: 'chat:model', name: 'x', main: false, dialect: 'nanoclaw' })
  testbed.store.transaction(transaction => {
    const model = transaction.group('model')
    if (model)
      for (const [i, jid] of old.entries()) transaction.insertGroup({ ...model, folder: `old-${i}`, jid })
  })
  for (const [i, jid] of old.entries()) {
    expect((await testbed.ask(`old-${i}`, 'send_message', { jid, text: 'hello' })).outcome).toMatchObject({
      ok: true,
    })
  }
  expect(
    (await testbed.ask('old-0', 'send_message', { jid: 'chat:\u00f6ld', text: 'x' })).outcome,
  ).toMatchObject({ ok: true })
  expect(testbed.store.messages({}).map(({ jid }) => jid)).toEqual([...old, old[0]])
})
