import { describe, expect, it } from 'vitest'
import { content, dropped, everyTask, family, hello, indented, inLisbon, main } from '../testing.ts'
import { nanoclaw } from './nanoclaw.ts'

const timestamp = '2026-02-01T15:30:00.000Z'

describe('files of NanoClaw’s containers', () => {
  it('message: to a chat, with or without the name of the part that speaks', () => {
    const body = {
      type: 'message',
      chatJid: '2@g.us',
      text: 'On my way',
      groupFolder: 'family-chat',
      timestamp,
    }
    expect(dropped('messages', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'message',
      command: { type: 'send_message', payload: { jid: '2@g.us', text: 'On my way' } },
    })
    expect(dropped('messages', indented({ ...body, sender: 'Researcher' })).command).toEqual({
      type: 'send_message',
      payload: { jid: '2@g.us', text: 'On my way', sender: 'Researcher' },
    })
  })

  it('reaction: to the last message or to a named one', () => {
    const body = { type: 'reaction', chatJid: '2@g.us', emoji: '👍', groupFolder: 'family-chat', timestamp }
    expect(dropped('messages', indented(body)).command).toEqual({
      type: 'react',
      payload: { jid: '2@g.us', emoji: '👍' },
    })
    expect(dropped('messages', indented({ ...body, messageId: '3EB0C431' })).command).toEqual({
      type: 'react',
      payload: { jid: '2@g.us', emoji: '👍', message_id: '3EB0C431' },
    })
  })

  it('schedule_task: with everything the code writes', () => {
    const body = {
      type: 'schedule_task',
      taskId: 'task-1769900000000-k3j9x2',
      prompt: 'Send the news',
      script: 'curl -fs localhost',
      schedule_type: 'cron',
      schedule_value: '0 9 * * *',
      context_mode: 'group',
      targetJid: '2@g.us',
      createdBy: 'main',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'schedule_task',
      command: {
        type: 'schedule_task',
        payload: {
          task_id: 'task-1769900000000-k3j9x2',
          prompt: 'Send the news',
          script: 'curl -fs localhost',
          schedule_type: 'cron',
          schedule_value: '0 9 * * *',
          context_mode: 'group',
          jid: '2@g.us',
        },
      },
    })
  })

  it('schedule_task: without a context mode, or with one there is not, the session is a fresh one', () => {
    const body = {
      type: 'schedule_task',
      prompt: 'p',
      schedule_type: 'once',
      schedule_value: '2030-01-01T09:00:00',
    }
    const isolated = { type: 'schedule_task', payload: { context_mode: 'isolated' } }
    expect(dropped('tasks', indented(body)).command).toMatchObject(isolated)
    expect(dropped('tasks', indented({ ...body, context_mode: 'shared' })).command).toMatchObject(isolated)
    expect(dropped('tasks', indented({ ...body, context_mode: null })).command).toMatchObject(isolated)
  })

  it('schedule_task: milliseconds may be a number', () => {
    const body = { type: 'schedule_task', prompt: 'p', schedule_type: 'interval', schedule_value: 3600000 }
    expect(dropped('tasks', indented(body)).command).toMatchObject({ payload: { schedule_value: '3600000' } })
  })

  it('pause, resume and cancel: by task id, whatever else they say', () => {
    for (const type of ['pause_task', 'resume_task', 'cancel_task']) {
      const body = { type, taskId: 'task-1769900000000-k3j9x2', groupFolder: 'main', isMain: true, timestamp }
      expect(dropped('tasks', indented(body))).toEqual({
        dialect: 'nanoclaw',
        type,
        command: { type, payload: { task_id: 'task-1769900000000-k3j9x2' } },
      })
    }
  })

  it('update_task: any of its fields, an empty script, and isMain as the string it is there', () => {
    const body = {
      type: 'update_task',
      taskId: 't1',
      prompt: 'New words',
      script: '',
      schedule_type: 'interval',
      schedule_value: '60000',
      groupFolder: 'family-chat',
      isMain: 'true',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'update_task',
      command: {
        type: 'update_task',
        payload: {
          task_id: 't1',
          prompt: 'New words',
          script: '',
          schedule_type: 'interval',
          schedule_value: '60000',
        },
      },
    })
  })

  it('register_group: with and without its optional fields', () => {
    const body = {
      type: 'register_group',
      jid: '3@g.us',
      name: 'Work',
      folder: 'work',
      trigger: '@Andy',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'register_group',
      command: {
        type: 'register_group',
        payload: { jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Andy' },
      },
    })
    expect(
      dropped('tasks', indented({ ...body, requiresTrigger: false, containerConfig: { timeout: 5 } }))
        .command,
    ).toEqual({
      type: 'register_group',
      payload: { jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Andy', requires_trigger: false },
    })
  })

  it('register_group: says when mounts are asked for, and what mounts is dropped', () => {
    const body = { type: 'register_group', jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Andy' }
    const mount = { hostPath: '/etc', containerPath: 'etc', readonly: false }
    for (const containerConfig of [
      { additionalMounts: [mount] },
      { docker: { volumes: ['/:/host'] } },
      [{ Binds: { a: 'b' } }],
      { extra: [[{ mount: '/etc' }]] },
    ]) {
      expect(dropped('tasks', indented({ ...body, containerConfig })).command).toEqual({
        type: 'register_group',
        payload: { jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Andy', mounts_requested: true },
      })
    }
    for (const containerConfig of [{ additionalMounts: [] }, {}, null, 'mounts', { mounts: {} }]) {
      expect(dropped('tasks', indented({ ...body, containerConfig })).command).not.toHaveProperty(
        'payload.mounts_requested',
      )
    }
  })

  it('refresh_groups: as code writes it and as a shell does', () => {
    const expected = {
      dialect: 'nanoclaw',
      type: 'refresh_groups',
      command: { type: 'refresh_groups', payload: {} },
    }
    expect(dropped('tasks', indented({ type: 'refresh_groups', groupFolder: 'main', timestamp }))).toEqual(
      expected,
    )
    expect(dropped('tasks', '{"type":"refresh_groups"}\n')).toEqual(expected)
  })

  it('a skill’s request: a service call that is answered in x_results', () => {
    const requestId = 'xpost-1769900000000-k3j9x2'
    const body = { type: 'x_post', requestId, content: 'Hello, world', groupFolder: 'main', timestamp }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'x_post',
      command: { type: 'call_service', payload: { tool: 'x_post', arguments: { content: 'Hello, world' } } },
      reply: { directory: 'x_results', id: requestId, shape: 'success' },
    })
    const unanswerable = { type: 'x_post', content: 'Hello, world', groupFolder: 'main', timestamp }
    expect(dropped('tasks', indented(unanswerable))).toEqual({
      dialect: 'nanoclaw',
      type: 'x_post',
      command: { code: 'invalid_field', message: 'requestId: is required' },
    })
  })
})

describe('files of the fork', () => {
  it('schedule_task: no target, and a model', () => {
    const body = {
      type: 'schedule_task',
      prompt: 'Look at the sky',
      schedule_type: 'cron',
      schedule_value: '0 8 * * *',
      context_mode: 'isolated',
      model: 'small',
    }
    const { type: _, ...payload } = body
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'nanoclaw',
      type: 'schedule_task',
      command: { type: 'schedule_task', payload },
    })
  })

  it('pause, resume and cancel: by a number', () => {
    for (const type of ['pause_task', 'resume_task', 'cancel_task']) {
      expect(dropped('tasks', indented({ type, task_id: 42 })).command).toEqual({
        type,
        payload: { task_id: '42' },
      })
    }
  })

  it('update_task: by a number, with a status', () => {
    const body = {
      type: 'update_task',
      task_id: 42,
      prompt: 'New',
      schedule_value: '0 9 * * *',
      status: 'active',
    }
    expect(dropped('tasks', indented(body)).command).toEqual({
      type: 'update_task',
      payload: { task_id: '42', prompt: 'New', schedule_value: '0 9 * * *', status: 'active' },
    })
  })

  it('register_group: under other names, with a channel', () => {
    const body = {
      type: 'register_group',
      jid: '3@g.us',
      name: 'New Chat',
      folder: 'new-chat',
      trigger_pattern: '@assistant',
      requires_trigger: true,
      channel: 'whatsapp',
    }
    expect(dropped('tasks', indented(body)).command).toEqual({
      type: 'register_group',
      payload: {
        jid: '3@g.us',
        name: 'New Chat',
        folder: 'new-chat',
        trigger: '@assistant',
        requires_trigger: true,
        channel: 'whatsapp',
      },
    })
  })
})

describe('a refused file of the flat shape', () => {
  const refusalOf = (directory: string, body: object) => dropped(directory, indented(body)).command

  it('is told the field as it was written and the rule, never the value', () => {
    const task = { type: 'schedule_task', prompt: 'p', schedule_type: 'cron', schedule_value: '* * * * *' }
    for (const [directory, body, message] of [
      ['messages', { type: 'message', text: 'hi' }, 'chatJid: is required'],
      ['messages', { type: 'message', chatJid: '2@g.us' }, 'text: is required'],
      ['messages', { type: 'message', chatJid: '2@g.us', text: '' }, 'text: must not be empty'],
      ['messages', { type: 'message', chatJid: '2@g.us', text: ['hi'] }, 'text: must be a string'],
      ['messages', { type: 'message', chatJid: '__proto__', text: 'hi' }, 'chatJid: is not a chat'],
      ['tasks', { ...task, schedule_type: 'hourly' }, 'schedule_type: must be one of cron, interval, once'],
      ['tasks', { ...task, schedule_type: undefined }, 'schedule_type: is required'],
      [
        'tasks',
        { ...task, targetJid: '2@g.us', targetGroup: 'work' },
        'targetGroup: must not stand beside a chat',
      ],
      ['tasks', { ...task, targetGroup: 'errors' }, 'targetGroup: is a reserved name'],
      ['tasks', { type: 'pause_task' }, 'taskId: is required'],
      [
        'tasks',
        { type: 'update_task', task_id: '1', status: 'done' },
        'status: must be one of active, paused, cancelled',
      ],
    ] as const) {
      expect(refusalOf(directory, body)).toEqual({ code: 'invalid_field', message })
    }
    for (const taskId of ['../../etc', -1, 1e30, 1.5, true, { a: 1 }]) {
      expect(refusalOf('tasks', { type: 'cancel_task', taskId })).toMatchObject({ code: 'invalid_field' })
    }
    for (const folder of ['../..', 'Errors', 'GLOBAL', '', '.hidden', 'a/b', 'a'.repeat(65)]) {
      const body = { type: 'register_group', jid: '3@g.us', name: 'n', folder, trigger: '@x' }
      expect(refusalOf('tasks', body)).toMatchObject({
        code: 'invalid_field',
        message: expect.stringMatching(/^folder: /),
      })
    }
  })

  it('lies in a directory where no container puts such a file', () => {
    const register = { type: 'register_group', jid: '3@g.us', name: 'n', folder: 'f', trigger: '@x' }
    for (const [directory, body, message] of [
      ['messages', register, 'type: a file of this type belongs in tasks/ or groups/'],
      [
        'tasks',
        { type: 'message', chatJid: '2@g.us', text: 'hi' },
        'type: a file of this type belongs in messages/',
      ],
      ['groups', { type: 'refresh_groups' }, 'type: a file of this type belongs in tasks/'],
      ['input', { type: 'refresh_groups' }, 'type: a file of this type belongs in tasks/'],
    ] as const) {
      expect(refusalOf(directory, body)).toEqual({ code: 'invalid_field', message })
    }
  })
})

describe('what NanoClaw’s containers are given', () => {
  it('tasks: main sees everyone’s, without what was cancelled', () => {
    const file = nanoclaw.tasks(everyTask, main)
    expect(file.path).toBe('current_tasks.json')
    expect(content(file)).toEqual([
      {
        id: '1',
        groupFolder: 'main',
        prompt: 'Morning summary',
        script: './changed.sh',
        schedule_type: 'cron',
        schedule_value: '0 8 * * *',
        status: 'active',
        next_run: '2026-02-18T07:00:00.000Z',
        model: 'small',
      },
      {
        id: 'task-1769900000000-k3j9x2',
        groupFolder: 'family-chat',
        prompt: 'Water the plants',
        schedule_type: 'interval',
        schedule_value: '3600000',
        status: 'paused',
        next_run: null,
      },
    ])
  })

  it('tasks: others see their own', () => {
    expect(content(nanoclaw.tasks(everyTask, family))).toEqual([
      {
        id: 'task-1769900000000-k3j9x2',
        groupFolder: 'family-chat',
        prompt: 'Water the plants',
        schedule_type: 'interval',
        schedule_value: '3600000',
        status: 'paused',
        next_run: null,
      },
    ])
  })

  it('groups: main sees all of them, others an empty list', () => {
    const file = nanoclaw.groups([main, family], main, '2026-02-06T12:35:00.000Z')
    expect(file?.path).toBe('available_groups.json')
    expect(content(file)).toEqual({
      groups: [
        { jid: '1@g.us', name: 'Main', lastActivity: '2026-02-06T12:34:56.000Z', isRegistered: true },
        { jid: '2@g.us', name: 'Family Chat', lastActivity: '2026-01-01T00:00:00.000Z', isRegistered: true },
      ],
      lastSync: '2026-02-06T12:35:00.000Z',
    })
    expect(content(nanoclaw.groups([main, family], family, '2026-02-06T12:35:00.000Z'))).toEqual({
      groups: [],
      lastSync: '2026-02-06T12:35:00.000Z',
    })
  })

  it('input and the sign to finish', () => {
    const file = nanoclaw.input(hello, '1769900000000-k3j9x2', inLisbon)
    expect(file.path).toBe('input/1769900000000-k3j9x2.json')
    expect(content(file)).toEqual({
      type: 'message',
      text: '<context timezone="Europe/Lisbon" />\n<messages>\n<message sender="Alice" time="Feb 6, 2026, 12:35 PM">One more thing</message>\n</messages>',
    })
    expect(nanoclaw.close(timestamp)).toEqual({ path: 'input/_close', content: '' })
  })
})
