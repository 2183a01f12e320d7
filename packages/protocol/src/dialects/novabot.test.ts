import { describe, expect, it } from 'vitest'
import { content, dropped, everyTask, family, hello, indented, inLisbon, main } from '../testing.ts'
import { recognise } from '../translate.ts'
import { nanoclaw } from './nanoclaw.ts'
import { novabot } from './novabot.ts'

const timestamp = '2026-02-01T15:30:00.000Z'

describe('files of NovaBot’s containers', () => {
  it('message: as NanoClaw writes it', () => {
    const body = { type: 'message', chatJid: '2@g.us', text: 'Hello', groupFolder: 'family-chat', timestamp }
    expect(dropped('messages', indented(body)).command).toEqual({
      type: 'send_message',
      payload: { jid: '2@g.us', text: 'Hello' },
    })
  })

  it('send_message: the document’s word, with the text under another name', () => {
    const body = {
      type: 'send_message',
      chatJid: '2@g.us',
      message: 'Good day',
      groupFolder: 'main',
    }
    expect(dropped('messages', JSON.stringify(body))).toEqual({
      dialect: 'novabot',
      type: 'send_message',
      command: { type: 'send_message', payload: { jid: '2@g.us', text: 'Good day' } },
    })
  })

  it('reply: a message, with something to say aloud or without', () => {
    const body = {
      type: 'reply',
      text: 'Three points: …',
      audio_text: null,
      audio_title: null,
      chatJid: '2@g.us',
    }
    const written = { ...body, groupFolder: 'family-chat', timestamp }
    expect(dropped('messages', indented(written))).toEqual({
      dialect: 'novabot',
      type: 'reply',
      command: { type: 'send_message', payload: { jid: '2@g.us', text: 'Three points: …' } },
    })
    expect(dropped('messages', indented({ ...written, audio_text: 'Three points.' })).command).toEqual({
      type: 'send_message',
      payload: { jid: '2@g.us', text: 'Three points: …', speech: { text: 'Three points.' } },
    })
    const titled = { ...written, audio_text: 'Three points.', audio_title: 'Summary' }
    expect(dropped('messages', indented(titled)).command).toEqual({
      type: 'send_message',
      payload: {
        jid: '2@g.us',
        text: 'Three points: …',
        speech: { text: 'Three points.', title: 'Summary' },
      },
    })
  })

  it('speak: in its own directory, to the own chat if it names none', () => {
    const body = { type: 'speak', text: 'Good morning', title: null }
    expect(dropped('audio', indented(body))).toEqual({
      dialect: 'novabot',
      type: 'speak',
      command: { type: 'send_message', payload: { text: 'Good morning', speech: { text: 'Good morning' } } },
    })
    const written = { ...body, title: 'Briefing', chatJid: '2@g.us', groupFolder: 'family-chat', timestamp }
    expect(dropped('audio', indented(written)).command).toEqual({
      type: 'send_message',
      payload: { jid: '2@g.us', text: 'Good morning', speech: { text: 'Good morning', title: 'Briefing' } },
    })
    expect(dropped('messages', indented(body)).command).toMatchObject({ code: 'invalid_field' })
    const message = { type: 'message', chatJid: '2@g.us', text: 'Hello' }
    expect(dropped('audio', indented(message)).command).toMatchObject({ code: 'invalid_field' })
  })

  it('schedule_task: the target is chatJid', () => {
    const body = {
      type: 'schedule_task',
      prompt: 'Send the weather',
      schedule_type: 'cron',
      schedule_value: '0 9 * * *',
      context_mode: 'isolated',
      groupFolder: 'main',
      chatJid: '2@g.us',
    }
    expect(dropped('tasks', JSON.stringify(body))).toEqual({
      dialect: 'novabot',
      type: 'schedule_task',
      command: {
        type: 'schedule_task',
        payload: {
          prompt: 'Send the weather',
          schedule_type: 'cron',
          schedule_value: '0 9 * * *',
          context_mode: 'isolated',
          jid: '2@g.us',
        },
      },
    })
  })

  it('schedule_task: a folder that is not the sender’s own is the target', () => {
    const body = {
      type: 'schedule_task',
      prompt: 'Send the weather',
      schedule_type: 'cron',
      schedule_value: '0 9 * * *',
      context_mode: 'group',
      groupFolder: 'family-chat',
      chatJid: '1@g.us',
      createdBy: 'main',
    }
    const targetOf = (sender: string, groupFolder: string) => {
      const { command } = recognise({ directory: 'tasks', sender, body: { ...body, groupFolder } })
      if ('code' in command) return command.message
      const { jid, group } = command.payload as { jid?: string; group?: string }
      return { jid, group }
    }
    expect(targetOf('main', 'family-chat')).toEqual({ group: 'family-chat' })
    expect(targetOf('main', 'main')).toEqual({ jid: '1@g.us' })
    expect(targetOf('main', '../x')).toMatch(/^groupFolder: /)
  })

  it('pause, resume and cancel: by taskId', () => {
    for (const type of ['pause_task', 'resume_task', 'cancel_task']) {
      const body = { type, taskId: 't-9', groupFolder: 'family-chat', isMain: false, timestamp }
      expect(dropped('tasks', indented(body)).command).toEqual({ type, payload: { task_id: 't-9' } })
    }
  })

  it('update_task: the fields in an object of their own', () => {
    const updates = { prompt: 'New', schedule_type: 'interval', schedule_value: 60000, status: 'paused' }
    const body = { type: 'update_task', taskId: 't-9', updates, groupFolder: 'family-chat' }
    expect(dropped('tasks', JSON.stringify(body))).toEqual({
      dialect: 'novabot',
      type: 'update_task',
      command: {
        type: 'update_task',
        payload: {
          task_id: 't-9',
          prompt: 'New',
          schedule_type: 'interval',
          schedule_value: '60000',
          status: 'paused',
        },
      },
    })
    expect(dropped('tasks', JSON.stringify({ ...body, updates: [1] })).command).toEqual({
      code: 'invalid_field',
      message: 'updates: must be an object',
    })
    expect(dropped('tasks', JSON.stringify({ ...body, updates: { status: 'gone' } })).command).toEqual({
      code: 'invalid_field',
      message: 'updates.status: must be one of active, paused, cancelled',
    })
  })

  it('register_group: among the tasks by the code, among the groups by the document', () => {
    const body = {
      type: 'register_group',
      jid: '3@g.us',
      name: 'Family Chat',
      folder: 'family',
      trigger: '@Nova',
    }
    const command = {
      type: 'register_group',
      payload: { jid: '3@g.us', name: 'Family Chat', folder: 'family', trigger: '@Nova' },
    }
    expect(dropped('tasks', indented({ ...body, timestamp })).command).toEqual(command)
    expect(dropped('groups', JSON.stringify({ ...body, groupFolder: 'main' }))).toEqual({
      dialect: 'novabot',
      type: 'register_group',
      command,
    })
  })

  it('unregister_group: by jid', () => {
    const body = { type: 'unregister_group', jid: '3@g.us', groupFolder: 'main' }
    expect(dropped('groups', JSON.stringify(body))).toEqual({
      dialect: 'novabot',
      type: 'unregister_group',
      command: { type: 'unregister_group', payload: { jid: '3@g.us' } },
    })
  })

  it('refresh_groups: its type and nothing else', () => {
    expect(dropped('tasks', '{"type":"refresh_groups"}').command).toEqual({
      type: 'refresh_groups',
      payload: {},
    })
  })

  it('is read like the flat file it is when it states version 1, an idea of its document', () => {
    const body = {
      version: 1,
      type: 'send_message',
      chatJid: '2@g.us',
      message: 'Hello',
      groupFolder: 'main',
    }
    expect(dropped('messages', JSON.stringify(body))).toEqual({
      dialect: 'novabot',
      type: 'send_message',
      command: { type: 'send_message', payload: { jid: '2@g.us', text: 'Hello' } },
    })
  })
})

describe('what NovaBot’s containers are given', () => {
  it('snapshots as NanoClaw’s', () => {
    const syncedAt = '2026-02-06T12:35:00.000Z'
    for (const viewer of [main, family]) {
      expect(novabot.tasks(everyTask, viewer)).toEqual(nanoclaw.tasks(everyTask, viewer))
      expect(novabot.groups([main, family], viewer, syncedAt)).toEqual(
        nanoclaw.groups([main, family], viewer, syncedAt),
      )
    }
  })

  it('input in the inbox, and the sign to finish among the controls', () => {
    const file = novabot.input(hello, '1769900000000-k3j9x2', inLisbon)
    expect(file.path).toBe('inbox/1769900000000-k3j9x2.json')
    expect(content(file)).toEqual({
      id: '1769900000000-k3j9x2',
      prompt:
        '<messages>\n<message sender="Alice" time="2026-02-06T12:35:00.000Z">One more thing</message>\n</messages>',
      timestamp: '2026-02-06T12:35:00.000Z',
    })
    const close = novabot.close(timestamp)
    expect(close.path).toBe('control/shutdown.json')
    expect(content(close)).toEqual({ type: 'shutdown', timestamp })
  })
})
