import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commandSchema, commandTypes, payloads } from './commands.ts'
import type { IncomingFile } from './dialect.ts'
import { isPlainObject } from './dialects/fields.ts'
import { isRefusal } from './errors.ts'
import { requestIdSchema } from './identifiers.ts'
import { inboundDirectories } from './placement.ts'
import { dialectNames } from './snapshots.ts'
import { dialects, recognise } from './translate.ts'

const cron = { schedule_type: 'cron', schedule_value: '0 9 * * *' }
const register = { type: 'register_group', jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Andy' }
const enveloped = (type: string, payload: object): IncomingFile['body'] => ({
  type,
  payload,
  source_group: 'main',
})
const versioned = (type: string, payload: object): IncomingFile['body'] => ({
  version: 1,
  id: 'r-1',
  type,
  payload,
})

/** One accepted file of every kind, from which the others are made. */
const accepted: readonly [directory: string, body: IncomingFile['body']][] = [
  ['messages', { type: 'message', chatJid: '2@g.us', text: 'Hello', sender: 'Researcher' }],
  ['messages', { type: 'send_message', chatJid: '2@g.us', message: 'Hello' }],
  ['messages', { type: 'reply', chatJid: '2@g.us', text: 'Hello', audio_text: 'Hello', audio_title: null }],
  ['messages', { type: 'reaction', chatJid: '2@g.us', emoji: '👍', messageId: '3EB0' }],
  ['audio', { type: 'speak', text: 'Hello', title: 'Greeting' }],
  [
    'tasks',
    { type: 'schedule_task', prompt: 'p', ...cron, context_mode: 'group', targetJid: '2@g.us', model: 'm' },
  ],
  ['tasks', { type: 'schedule_task', prompt: 'p', ...cron, targetGroup: 'work', script: 's' }],
  ['tasks', { type: 'update_task', taskId: 't1', prompt: 'p', script: '' }],
  ['tasks', { type: 'update_task', task_id: 42, updates: { status: 'paused', schedule_value: 60000 } }],
  ['tasks', { type: 'pause_task', task_id: 42 }],
  ['tasks', { type: 'resume_task', taskId: 't1' }],
  ['tasks', { type: 'cancel_task', taskId: 't1' }],
  [
    'tasks',
    { ...register, requiresTrigger: true, containerConfig: { additionalMounts: [{ hostPath: '/' }] } },
  ],
  ['groups', register],
  ['groups', { type: 'unregister_group', jid: '3@g.us' }],
  ['tasks', { type: 'refresh_groups' }],
  ['tasks', { signal: 'refresh_groups' }],
  ['tasks', { type: 'schedule_host_job', name: 'n', command: 'c', ...cron, cwd: null, timeout_seconds: 60 }],
  ['tasks', { type: 'create_periodic_agent', name: 'n', schedule: '0 9 * * *', prompt: 'p', claude_md: 'c' }],
  ['tasks', { type: 'deploy', rebuildContainer: true, resumePrompt: 'p', headSha: '', sessionId: '' }],
  ['tasks', { type: 'reset_context', message: 'm' }],
  ['tasks', { type: 'finished_work' }],
  ['tasks', { type: 'sync_worktree_to_main', requestId: 'r-1' }],
  ['tasks', { type: 'service:create_event', request_id: 'r-1', title: 'Dentist', version: 2 }],
  ['tasks', { type: 'ask_user:ask', request_id: 'r-1', questions: [{ question: 'Why?' }] }],
  ['tasks', { version: 1, id: 'r-1', type: 'cancel_request', payload: { request_id: 'r-0' } }],
  ['tasks', { type: 'security:bash_check', request_id: 'r-1', command: 'ls' }],
  ['tasks', { type: 'x_post', requestId: 'r-1', content: 'Hello' }],
  ['tasks', enveloped('schedule_task', { prompt: 'p', ...cron, chat_jid: '2@g.us' })],
  ['tasks', enveloped('pause_task', { task_id: 'abc' })],
  ['tasks', enveloped('register_group', { name: 'n', folder: 'work', chat_jid: '3@g.us' })],
  ['tasks', enveloped('refresh_groups', {})],
  ['messages', versioned('send_message', { text: 'Hello', speech: { text: 'Hello' } })],
  ['tasks', versioned('schedule_task', { prompt: 'p', ...cron, timezone: 'Europe/Berlin' })],
  ['tasks', versioned('update_task', { task_id: 't1', status: 'cancelled' })],
  ['tasks', versioned('call_service', { tool: 't', arguments: { a: 1 } })],
  ['tasks', versioned('refresh_groups', {})],
  ['tasks', versioned('show_withheld', {})],
]
const types = [...new Set(accepted.map(([, body]) => body.type ?? 'none')), 'nonsense']
const keys = [...new Set(accepted.flatMap(([, body]) => Object.keys(body)))]

const awkward = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    ...types,
    ...inboundDirectories,
    '',
    null,
    1,
    '1',
    '../x',
    '__proto__',
    'r-2',
    1e30,
    [],
    {},
    '🙂',
  ),
)
const change = fc.record({
  key: fc.constantFrom(...keys, '__proto__', 'constructor'),
  value: awkward,
  gone: fc.boolean(),
})

/** Files that are right, or wrong in up to three places; and a few that are nothing like a file. */
const file: fc.Arbitrary<IncomingFile> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .tuple(fc.constantFrom(...accepted), fc.array(change, { maxLength: 3 }), fc.boolean())
      .map(([[directory, body], changes, inPayload]) => {
        const changed: Record<string, unknown> = { ...body }
        for (const { key, value, gone } of changes) {
          const { payload } = changed
          const target = inPayload && isPlainObject(payload) ? { ...payload } : changed
          if (gone) delete target[key]
          else
            Object.defineProperty(target, key, {
              value,
              enumerable: true,
              configurable: true,
              writable: true,
            })
          if (target !== changed) changed.payload = target
        }
        return { directory, body: changed }
      }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      directory: fc.constantFrom(...inboundDirectories, 'input'),
      body: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom(...keys)), fc.jsonValue()),
    }),
  },
)

describe('translation', () => {
  it('accepts one file of every kind', () => {
    for (const [directory, body] of accepted)
      expect(recognise({ directory, body }).command).toHaveProperty('payload')
    const commands = accepted.map(([directory, body]) => recognise({ directory, body }).command)
    const seen = new Set(commands.map(command => (isRefusal(command) ? command.code : command.type)))
    expect([...seen].sort()).toEqual([...commandTypes].sort())
  })

  it('never throws, and never gives a command that its own schema would not accept', () => {
    fc.assert(
      fc.property(file, given => {
        const before = JSON.stringify(given)
        const { command, reply, type } = recognise(given)
        if (!isRefusal(command)) expect(commandSchema.parse(command)).toEqual(command)
        if (reply) expect(requestIdSchema.safeParse(reply.id).success).toBe(true)
        expect(type).toMatch(/^[A-Za-z0-9_:.-]{1,64}$|^\?$/)
        expect(JSON.stringify(given)).toBe(before)
      }),
      { numRuns: 2000 },
    )
  })

  it('is not changed by anything a file says about its sender', () => {
    const claims = fc.record(
      {
        groupFolder: fc.constantFrom('main', '../main', 7),
        isMain: fc.constantFrom(true, 'true', 1),
        isAdmin: fc.boolean(),
        isGod: fc.boolean(),
        createdBy: fc.constantFrom('main', null),
        _cop_approved: fc.constant(true),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(file, claims, (given, claim) => {
        // a signal and a version 1 file carry their own fields only, so there a claim is one field too many
        fc.pre(given.body.signal === undefined && given.body.version === undefined)
        expect(recognise({ ...given, body: { ...given.body, ...claim } })).toEqual(recognise(given))
      }),
      { numRuns: 1000 },
    )
  })

  it('answers every file that has a valid request id, accepted or refused', () => {
    const named = fc.constantFrom('request_id', 'requestId')
    fc.assert(
      fc.property(
        fc.constantFrom(...types, 'nonsense'),
        named,
        fc.constantFrom(...inboundDirectories),
        (type, name, directory) => {
          expect(recognise({ directory, body: { type, [name]: 'r-1' } }).reply).toMatchObject({ id: 'r-1' })
        },
      ),
    )
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (version, type, payload) => {
        const translation = recognise({ directory: 'tasks', body: { version, id: 'r-1', type, payload } })
        expect(translation.reply).toEqual({ directory: 'responses', id: 'r-1', shape: 'receipt' })
      }),
    )
  })

  it('refuses a file nobody knows, and names its type only if it is fit to print', () => {
    expect(recognise({ directory: 'tasks', body: {} }).command).toEqual({
      code: 'invalid_field',
      message: 'type: is required',
    })
    expect(recognise({ directory: 'tasks', body: { type: 'open_door' } })).toEqual({
      dialect: 'hatchway',
      type: 'open_door',
      command: { code: 'unknown_type', message: 'there is no command of type open_door' },
    })
    for (const type of ['<script>', 'a b', 'x'.repeat(65), '\u0000', '']) {
      expect(recognise({ directory: 'tasks', body: { type } })).toEqual({
        dialect: 'hatchway',
        type: '?',
        command: { code: 'unknown_type', message: 'there is no command of the type the file names' },
      })
    }
  })

  it('knows every command there is a payload for', () => {
    expect(commandSchema.options.map(option => option.shape.type.value).sort()).toEqual(
      Object.keys(payloads).sort(),
    )
  })

  it('has a dialect for every name, with the directories all of them need', () => {
    for (const name of dialectNames) {
      expect(dialects[name].name).toBe(name)
      expect(dialects[name].directories).toEqual(expect.arrayContaining(['messages', 'tasks', 'input']))
    }
  })
})
