import { describe, expect, it } from 'vitest'
import { taskSchema } from '../snapshots.ts'
import {
  content,
  dropped,
  everyTask,
  family,
  familyTask,
  hello,
  inLisbon,
  main,
  mainTask,
} from '../testing.ts'
import { hatchway } from './hatchway.ts'

const id = '0198a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
const reply = { directory: 'responses', id, shape: 'receipt' }
const sent = (body: object, directory = 'tasks') =>
  dropped(directory, JSON.stringify({ version: 1, id, sent_at: '2026-02-01T15:30:00.000Z', ...body }))

describe('version 1', () => {
  it('takes any command in tasks/ and messages/, and answers with a receipt', () => {
    const body = { type: 'send_message', payload: { text: 'Hello' } }
    for (const directory of ['tasks', 'messages']) {
      expect(sent(body, directory)).toEqual({
        dialect: 'hatchway',
        type: 'send_message',
        command: { type: 'send_message', payload: { text: 'Hello' } },
        reply,
      })
    }
    expect(sent({ type: 'pause_task', payload: { task_id: '1' } }, 'messages').command).toEqual({
      type: 'pause_task',
      payload: { task_id: '1' },
    })
    expect(sent({ type: 'unregister_group', payload: { jid: 'a@b' } }, 'groups').command).toEqual({
      type: 'unregister_group',
      payload: { jid: 'a@b' },
    })
    expect(sent(body, 'groups')).toMatchObject({ command: { code: 'invalid_field' }, reply })
  })

  it('schedules with the conversation unless told otherwise', () => {
    const payload = {
      prompt: 'p',
      schedule_type: 'cron',
      schedule_value: '* * * * *',
      timezone: 'Europe/Berlin',
    }
    expect(sent({ type: 'schedule_task', payload }).command).toEqual({
      type: 'schedule_task',
      payload: { ...payload, context_mode: 'group' },
    })
  })

  it('needs no payload where a command has no fields', () => {
    expect(sent({ type: 'refresh_groups' }).command).toEqual({ type: 'refresh_groups', payload: {} })
  })

  it('refuses a field that does not exist, names the nearest one that does, and still answers', () => {
    const task = { prompt: 'p', schedule_type: 'cron', schedule_value: '* * * * *' }
    for (const [type, payload, message] of [
      [
        'send_message',
        { text: 'Here', files: ['a.png'] },
        'files: there is no such field; did you mean attachments?',
      ],
      // the wrong name is said, and not that the right one is missing
      ['send_message', { message: 'Here' }, 'message: there is no such field; did you mean text?'],
      [
        'send_message',
        { text: 'Here', atachments: [] },
        'atachments: there is no such field; did you mean attachments?',
      ],
      [
        'send_message',
        { text: 'Here', chatJid: 'a@b' },
        'chatJid: there is no such field; did you mean jid?',
      ],
      [
        'send_message',
        { text: 'Here', attachments: [{ path: 'a' }, { file: 'b' }] },
        'attachments.1.file: there is no such field; did you mean path?',
      ],
      [
        'send_message',
        { text: 'Here', speech: { text: 'x', volume: 3 } },
        'speech.volume: there is no such field; known are text, title',
      ],
      [
        'schedule_task',
        { ...task, contextMode: 'isolated' },
        'contextMode: there is no such field; did you mean context_mode?',
      ],
      [
        'schedule_task',
        { ...task, time_zone: 'UTC' },
        'time_zone: there is no such field; did you mean timezone?',
      ],
      ['pause_task', { taskId: '1' }, 'taskId: there is no such field; did you mean task_id?'],
      [
        'register_group',
        { jid: 'a@b', name: 'n', folder: 'f', containerConfig: { mounts: ['/'] } },
        'containerConfig: there is no such field; known are jid, name, folder, trigger, requires_trigger, channel, mounts_requested',
      ],
      [
        'ask_user',
        { questions: [{ question: 'q', options: [{ label: 'a', value: 1 }] }] },
        'questions.0.options.0.value: there is no such field; did you mean label?',
      ],
      ['finished_work', { result: 'ok' }, 'result: there is no such field; none is expected here'],
      ['call_service', { tool: 't', args: {} }, 'args: there is no such field; did you mean arguments?'],
    ] as const) {
      expect(sent({ type, payload })).toMatchObject({
        command: { code: 'invalid_field', message: `payload.${message}` },
        reply,
      })
    }
    expect(
      sent({ type: 'call_service', payload: { tool: 't', arguments: { any: { thing: 1 } } } }).command,
    ).toHaveProperty('payload')
  })

  it('refuses a field beside the payload, too', () => {
    const body = { type: 'send_message', payload: { text: 'Here' } }
    for (const [more, message] of [
      [
        { attachments: [{ path: 'a' }] },
        'attachments: there is no such field; did you mean payload.attachments?',
      ],
      [{ timestamp: 1 }, 'timestamp: there is no such field; did you mean sent_at?'],
      [{ isMain: true }, 'isMain: there is no such field; known are version, id, sent_at, type, payload'],
    ] as const) {
      expect(sent({ ...body, ...more })).toMatchObject({ command: { code: 'invalid_field', message }, reply })
    }
  })

  it('shows of an unknown field’s name only what is short and plain', () => {
    for (const name of [
      'x'.repeat(41),
      'a b',
      '\u001b[2J',
      'files\u202e',
      '<b>',
      '',
      'sk-ant.api/03',
      'ﬁles',
    ]) {
      for (const body of [{ payload: { text: 't', [name]: 1 } }, { payload: { text: 't' }, [name]: 1 }]) {
        const { command } = sent({ type: 'send_message', ...body })
        expect(command).toMatchObject({ code: 'invalid_field' })
        expect(JSON.stringify(command)).toMatch(
          /^[^<\\]*"(?:payload\.)?\?: there is no such field; known are [a-z_, ]+"}$/,
        )
      }
    }
  })

  it('refuses any other version with the versions spoken, and still answers', () => {
    for (const version of [0, 2, '1', null, [1], 1.1]) {
      expect(sent({ version, type: 'refresh_groups', payload: {} })).toEqual({
        dialect: 'hatchway',
        type: 'refresh_groups',
        command: { code: 'unsupported_version', message: 'version: this host speaks 1' },
        reply,
      })
    }
    expect(dropped('messages', '{"version":2,"type":"message","chatJid":"a","text":"b"}')).toEqual({
      dialect: 'hatchway',
      type: 'message',
      command: { code: 'unsupported_version', message: 'version: this host speaks 1' },
    })
  })

  it('refuses what is wrong by field and rule, and still answers', () => {
    const task = { prompt: 'p', schedule_type: 'cron', schedule_value: '* * * * *' }
    for (const [body, code, message] of [
      [{ type: 'open_door', payload: {} }, 'unknown_type', 'there is no command of type open_door'],
      [{ type: 'toString', payload: {} }, 'unknown_type', 'there is no command of type toString'],
      [
        { type: 'x\n\u001b[2J', payload: {} },
        'unknown_type',
        'there is no command of the type the file names',
      ],
      [{ type: 'message', payload: {} }, 'unknown_type', 'there is no command of type message'],
      [{ payload: {} }, 'invalid_field', 'type: is required'],
      [{ type: 7, payload: {} }, 'invalid_field', 'type: must be a string'],
      [{ type: 'send_message' }, 'invalid_field', 'payload.text: is required'],
      [{ type: 'send_message', payload: [] }, 'invalid_field', 'payload: must be an object'],
      [{ type: 'send_message', payload: null }, 'invalid_field', 'payload: must be an object'],
      [
        { type: 'refresh_groups', sent_at: 'now' },
        'invalid_field',
        'sent_at: must be a time such as 2026-01-31T09:30:00Z',
      ],
      [
        { type: 'schedule_task', payload: { ...task, schedule_type: 'hourly' } },
        'invalid_field',
        'payload.schedule_type: must be one of cron, interval, once',
      ],
      [
        { type: 'schedule_task', payload: { ...task, schedule_value: 5 } },
        'invalid_field',
        'payload.schedule_value: must be a string',
      ],
      [
        { type: 'schedule_task', payload: { ...task, jid: 'a@b', group: 'work' } },
        'invalid_field',
        'payload.group: must not stand beside a chat',
      ],
      [
        { type: 'send_message', payload: { text: 'x'.repeat(1_000_001) } },
        'invalid_field',
        'payload.text: must be at most 1000000 characters',
      ],
    ] as const) {
      expect(sent(body)).toMatchObject({ command: { code, message }, reply })
    }
  })

  it('refuses an id that cannot be a file name, and gives it no answer', () => {
    for (const bad of ['../x', '', 7, null, 'a b', '-a']) {
      const translation = sent({ id: bad, type: 'refresh_groups', payload: {} })
      expect(translation.command).toEqual({
        code: 'invalid_field',
        message: 'id: must be 1 to 128 letters, digits, "-" or "_"',
      })
      expect(translation).not.toHaveProperty('reply')
    }
    expect(dropped('tasks', '{"version":1,"type":"refresh_groups","payload":{}}').command).toEqual({
      code: 'invalid_field',
      message: 'id: is required',
    })
  })
})

describe('what version 1 gives', () => {
  it('tasks: the canonical record, everyone’s for main and their own for others', () => {
    expect(content(hatchway.tasks(everyTask, main))).toEqual([mainTask, familyTask])
    expect(content(hatchway.tasks(everyTask, family))).toEqual([familyTask])
    expect(taskSchema.parse(mainTask)).toEqual(mainTask)
  })

  it('groups: the canonical record for main, an empty list for others', () => {
    const synced_at = '2026-02-06T12:35:00.000Z'
    expect(content(hatchway.groups([main, family], main, synced_at))).toEqual({
      groups: [main, family],
      synced_at,
    })
    expect(content(hatchway.groups([main, family], family, synced_at))).toEqual({ groups: [], synced_at })
  })

  it('input with its sender, and the sign to finish', () => {
    const file = hatchway.input(hello, '1769900000000-000001-k3j9x2', inLisbon)
    expect(file.path).toBe('input/1769900000000-000001-k3j9x2.json')
    expect(content(file)).toEqual({ version: 1, type: 'message', ...hello })
    expect(hatchway.close('2026-02-06T12:36:00.000Z')).toEqual({ path: 'input/_close', content: '' })
  })
})
