import { describe, expect, it } from 'vitest'
import { content, dropped, everyTask, family, hello, indented, inLisbon, main } from '../testing.ts'
import { nanoclaw } from './nanoclaw.ts'
import { pynchy } from './pynchy.ts'

const timestamp = '2026-02-01T15:30:00.123456+00:00'
const request_id = '3f2a9c0d1e4b5a6978877665544332211'

describe('files of Pynchy’s containers', () => {
  it('a signal: carries nothing, and with anything beside it is malformed', () => {
    const expected = {
      dialect: 'pynchy',
      type: 'refresh_groups',
      command: { type: 'refresh_groups', payload: {} },
    }
    expect(dropped('tasks', '{"signal": "refresh_groups"}')).toEqual(expected)
    expect(dropped('tasks', indented({ signal: 'refresh_groups', timestamp }))).toEqual(expected)
    for (const more of [{ groupFolder: 'main' }, { type: 'refresh_groups' }, { force: true }]) {
      expect(dropped('tasks', indented({ signal: 'refresh_groups', ...more })).command).toMatchObject({
        code: 'invalid_field',
      })
    }
    expect(dropped('tasks', '{"signal":"restart"}').command).toMatchObject({ code: 'unknown_type' })
    expect(dropped('tasks', '{"signal":["refresh_groups"]}').command).toMatchObject({ code: 'invalid_field' })
    expect(dropped('messages', '{"signal":"refresh_groups"}').command).toMatchObject({
      code: 'invalid_field',
    })
  })

  it('message: as NanoClaw writes it', () => {
    const body = {
      type: 'message',
      chatJid: '2@g.us',
      text: 'On my way',
      sender: null,
      groupFolder: 'g',
      timestamp,
    }
    expect(dropped('messages', indented(body)).command).toEqual({
      type: 'send_message',
      payload: { jid: '2@g.us', text: 'On my way' },
    })
  })

  it('schedule_task: the target is a folder', () => {
    const body = {
      type: 'schedule_task',
      prompt: 'Tidy up',
      schedule_type: 'interval',
      schedule_value: '300000',
      context_mode: 'group',
      targetGroup: 'code-improver',
      createdBy: 'admin-1',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'schedule_task',
      command: {
        type: 'schedule_task',
        payload: {
          prompt: 'Tidy up',
          schedule_type: 'interval',
          schedule_value: '300000',
          context_mode: 'group',
          group: 'code-improver',
        },
      },
    })
  })

  it('pause, resume and cancel: by taskId', () => {
    for (const type of ['pause_task', 'resume_task', 'cancel_task']) {
      const body = { type, taskId: 'task-1', groupFolder: 'admin-1', isAdmin: true, timestamp }
      expect(dropped('tasks', indented(body)).command).toEqual({ type, payload: { task_id: 'task-1' } })
    }
  })

  it('register_group: as NanoClaw writes it', () => {
    const body = {
      type: 'register_group',
      jid: '3@g.us',
      name: 'Work',
      folder: 'work',
      trigger: '@Pynchy',
      timestamp,
    }
    expect(dropped('tasks', indented({ ...body, containerConfig: null })).command).toEqual({
      type: 'register_group',
      payload: { jid: '3@g.us', name: 'Work', folder: 'work', trigger: '@Pynchy' },
    })
  })

  it('schedule_host_job: with no working directory and its own time limit', () => {
    const body = {
      type: 'schedule_host_job',
      name: 'backup',
      command: 'tar czf /tmp/b.tgz data',
      schedule_type: 'cron',
      schedule_value: '0 3 * * *',
      cwd: null,
      timeout_seconds: 600,
      createdBy: 'admin-1',
      timestamp,
    }
    const payload = {
      name: 'backup',
      command: 'tar czf /tmp/b.tgz data',
      schedule_type: 'cron',
      schedule_value: '0 3 * * *',
      timeout_seconds: 600,
    }
    const command = { type: 'schedule_host_job', payload }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'schedule_host_job',
      command,
    })
    const { timeout_seconds: _, ...unlimited } = body
    expect(dropped('tasks', indented({ ...unlimited, cwd: '/srv' })).command).toEqual({
      type: 'schedule_host_job',
      payload: { ...payload, cwd: '/srv' },
    })
  })

  it('create_periodic_agent', () => {
    const body = {
      type: 'create_periodic_agent',
      name: 'mail-summary',
      schedule: '0 9 * * *',
      prompt: 'Sum up the mail',
      context_mode: 'isolated',
      claude_md: '# Briefing',
      chat: '2@g.us',
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'create_periodic_agent',
      command: {
        type: 'create_periodic_agent',
        payload: {
          name: 'mail-summary',
          schedule: '0 9 * * *',
          prompt: 'Sum up the mail',
          context_mode: 'isolated',
          instructions: '# Briefing',
          jid: '2@g.us',
        },
      },
    })
    const short = { type: 'create_periodic_agent', name: 'a', schedule: '0 9 * * *', prompt: 'b' }
    expect(dropped('tasks', indented(short)).command).toEqual({
      type: 'create_periodic_agent',
      payload: { name: 'a', schedule: '0 9 * * *', prompt: 'b' },
    })
  })

  it('deploy', () => {
    const body = {
      type: 'deploy',
      rebuildContainer: true,
      resumePrompt: 'Look around',
      headSha: 'a1b2c3d4',
      sessionId: '',
      chatJid: '1@g.us',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'deploy',
      command: {
        type: 'deploy',
        payload: { rebuild: true, resume_prompt: 'Look around', head: 'a1b2c3d4', session_id: '' },
      },
    })
  })

  it('reset_context and finished_work: of the own group, whichever they name', () => {
    const own = { chatJid: '1@g.us', groupFolder: 'main', timestamp }
    expect(
      dropped('tasks', indented({ type: 'reset_context', message: 'Go on with step 2', ...own })),
    ).toEqual({
      dialect: 'pynchy',
      type: 'reset_context',
      command: { type: 'reset_context', payload: { message: 'Go on with step 2' } },
    })
    expect(dropped('tasks', indented({ type: 'reset_context', ...own })).command).toEqual({
      type: 'reset_context',
      payload: {},
    })
    expect(dropped('tasks', indented({ type: 'finished_work', ...own }))).toEqual({
      dialect: 'pynchy',
      type: 'finished_work',
      command: { type: 'finished_work', payload: {} },
    })
  })

  it('sync_worktree_to_main: answered in merge_results', () => {
    const body = {
      type: 'sync_worktree_to_main',
      groupFolder: 'work',
      requestId: '1769900000000-a1b2c3',
      timestamp,
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'sync_worktree_to_main',
      command: { type: 'sync_worktree', payload: {} },
      reply: { directory: 'merge_results', id: '1769900000000-a1b2c3', shape: 'success' },
    })
    expect(
      dropped('tasks', indented({ type: 'sync_worktree_to_main', groupFolder: 'work', timestamp })).command,
    ).toEqual({
      code: 'invalid_field',
      message: 'requestId: is required',
    })
  })

  it('a service request: arguments at top level, whatever they are called, but no claims and no flags', () => {
    const named = {
      calendar: 'home',
      title: 'Dentist',
      version: 2,
      id: 'e1',
      payload: { a: 1 },
      signal: 'x',
      jid: null,
    }
    const claims = {
      groupFolder: 'main',
      isMain: true,
      isAdmin: true,
      createdBy: 'main',
      source_group: 'main',
    }
    const body = { ...named, ...claims, _cop_approved: true, type: 'service:create_event', request_id }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'service:create_event',
      command: { type: 'call_service', payload: { tool: 'create_event', arguments: named } },
      reply: { directory: 'responses', id: request_id, shape: 'result' },
    })
  })

  it('ask_user: one to four questions', () => {
    const questions = [
      { question: 'Which one?', options: [{ label: 'A', description: 'the first' }] },
      { question: 'Anything else?' },
    ]
    const body = { questions, type: 'ask_user:ask', request_id }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'ask_user:ask',
      command: { type: 'ask_user', payload: { questions } },
      reply: { directory: 'responses', id: request_id, shape: 'result' },
    })
    const decorated = [
      {
        question: 'Which one?',
        header: 'One',
        multiSelect: false,
        options: [{ label: 'A', description: 'the first', value: 'a' }],
      },
      { question: 'Anything else?', options: null },
    ]
    expect(dropped('tasks', indented({ ...body, questions: decorated })).command).toEqual({
      type: 'ask_user',
      payload: { questions },
    })
    const unasked = dropped('tasks', indented({ ...body, questions: [] }))
    expect(unasked.command).toEqual({
      code: 'invalid_field',
      message: 'questions: must not be empty',
    })
    expect(unasked.reply).toBeDefined()
    expect(dropped('tasks', indented({ ...body, questions: [{ options: [] }] })).command).toEqual({
      code: 'invalid_field',
      message: 'questions.0.question: is required',
    })
  })

  it('security:bash_check: answered with a decision', () => {
    const body = {
      type: 'security:bash_check',
      request_id,
      command: 'wget http://a.test/x',
      groupFolder: 'work',
    }
    expect(dropped('tasks', indented(body))).toEqual({
      dialect: 'pynchy',
      type: 'security:bash_check',
      command: { type: 'check_shell', payload: { command: 'wget http://a.test/x' } },
      reply: { directory: 'responses', id: request_id, shape: 'decision' },
    })
  })

  it('a request it does not know is refused, and its asker told in the shape it waits for', () => {
    expect(dropped('tasks', indented({ type: 'security:file_check', request_id }))).toEqual({
      dialect: 'pynchy',
      type: 'security:file_check',
      command: { code: 'unknown_type', message: 'there is no command of type security:file_check' },
      reply: { directory: 'responses', id: request_id, shape: 'decision' },
    })
    expect(dropped('tasks', indented({ type: 'service:', request_id })).command).toMatchObject({
      code: 'invalid_field',
      message: expect.stringMatching(/^type: /),
    })
  })

  it('an id that cannot be a file name gets no answer', () => {
    for (const bad of ['../../x', 'a/b', '', 'a'.repeat(129), 7, ['a'], '.']) {
      expect(dropped('tasks', indented({ type: 'service:list_calendars', request_id: bad }))).toEqual({
        dialect: 'pynchy',
        type: 'service:list_calendars',
        command: {
          code: 'invalid_field',
          message: 'request_id: must be 1 to 128 letters, digits, "-" or "_"',
        },
      })
    }
    expect(dropped('tasks', indented({ type: 'service:list_calendars' })).command).toEqual({
      code: 'invalid_field',
      message: 'request_id: is required',
    })
  })
})

describe('what Pynchy’s containers are given', () => {
  it('tasks: NanoClaw’s fields and the kind of task', () => {
    const own = {
      type: 'agent',
      id: 'task-1769900000000-k3j9x2',
      groupFolder: 'family-chat',
      prompt: 'Water the plants',
      schedule_type: 'interval',
      schedule_value: '3600000',
      status: 'paused',
      next_run: null,
    }
    expect(content(pynchy.tasks(everyTask, family))).toEqual([own])
    expect(content(pynchy.tasks(everyTask, main))).toMatchObject([
      { type: 'agent', id: '1', groupFolder: 'main' },
      own,
    ])
  })

  it('groups, input and the sign to finish: as NanoClaw’s', () => {
    for (const viewer of [main, family]) {
      expect(pynchy.groups([main, family], viewer, timestamp)).toEqual(
        nanoclaw.groups([main, family], viewer, timestamp),
      )
    }
    expect(content(pynchy.input(hello, 'a', { ...inLisbon, notices: ['a < b'] }))).toEqual({
      type: 'message',
      text: '<system_notices>\n- a &lt; b\n</system_notices>\n<messages>\n<message sender="Alice" time="2026-02-06T12:35:00.000Z">One more thing</message>\n</messages>',
    })
    expect(pynchy.close(timestamp)).toEqual({ path: 'input/_close', content: '' })
  })
})
