import { writeFileSync } from 'node:fs'
import { awaited, isThere, present } from './boxes.ts'
import { check, must, mustHave, type Row } from './evidence.ts'
import type { Kit } from './kit.ts'
import { checkFlatGroups, flatTaskKeys, freshName, ipc, post, runNanoClaw } from './nanoclaw.ts'

/** The NanoClaw of its own repository. */
const kitFor = (who: Kit['who']): Kit => {
  const { folder, jid, main } = who
  const stamped = (content: object) => ({ ...content, timestamp: new Date().toISOString() })
  const task = (type: string, taskId: string) =>
    void post('tasks', stamped({ type, taskId, groupFolder: folder, isMain: main }))
  const message = (text: string, to = jid, more: object = {}) =>
    stamped({ type: 'message', chatJid: to, text, groupFolder: folder, ...more })

  /** A skill's request: looked for once a second, for a minute. */
  const skill = async (type: string, fields: Row): Promise<Row> => {
    const requestId = `${type.replace('_', '')}-${Date.now()}-${Math.random().toString(36).slice(2, 8)}`
    post('tasks', stamped({ type, requestId, ...fields, groupFolder: folder }))
    return awaited(`${ipc}/x_results/${requestId}.json`, 1000, 60_000)
  }
  const isAnswer = (answer: Row, success: boolean) => {
    mustHave(answer, ['success', 'message'], ['data'])
    must(answer.success === success && typeof answer.message === 'string', JSON.stringify(answer))
    if (success) mustHave(answer.data, ['url'])
    return JSON.stringify(answer)
  }

  return {
    ipc,
    who,
    takesAnyMode: true,
    boxes: ['messages', 'tasks', 'input', 'x_results'],
    post: (directory, content, name) => post(directory, stamped(content), name),
    temporaryName: () => `${freshName()}.tmp`,
    harmless: text => ({ directory: 'messages', body: message(text) }),
    message: (text, { jid: to, sender, claims } = {}) =>
      void post(
        'messages',
        message(text, to, {
          ...present({ sender }),
          ...(claims ? { groupFolder: 'main', isMain: true } : {}),
        }),
      ),
    schedule: ({ prompt, type, value, mode, target, id, script }) =>
      void post(
        'tasks',
        stamped({
          type: 'schedule_task',
          ...present({ taskId: id }),
          prompt,
          ...present({ script }),
          schedule_type: type,
          schedule_value: value,
          ...present({ context_mode: mode }),
          targetJid: target?.jid ?? jid,
          createdBy: folder,
        }),
      ),
    pause: id => task('pause_task', id),
    resume: id => task('resume_task', id),
    cancel: id => task('cancel_task', id),
    update(taskId, { prompt, type, value, script }) {
      const change = present({ prompt, script, schedule_type: type, schedule_value: value })
      if (Object.keys(change).length === 0) return
      // The main group's rights are a text here, and nowhere else.
      post(
        'tasks',
        stamped({ type: 'update_task', taskId, groupFolder: folder, isMain: String(main), ...change }),
      )
    },
    register: ({ jid, name, folder: newFolder, trigger, needsTrigger, config }) =>
      void post(
        'tasks',
        stamped({
          type: 'register_group',
          ...{ jid, name, folder: newFolder, trigger },
          ...present({ requiresTrigger: needsTrigger, containerConfig: config }),
        }),
      ),
    refreshBody: { type: 'refresh_groups' },
    taskKeys: { always: flatTaskKeys, maybe: ['script'], group: 'groupFolder' },
    checkGroups: checkFlatGroups(main),
    own: {
      async reactions() {
        const reaction = { type: 'reaction', chatJid: jid, groupFolder: folder }
        post('messages', stamped({ ...reaction, emoji: '👍', messageId: 'message-42' }))
        post('messages', stamped({ ...reaction, emoji: '🎉' }))
      },
      async 'document-names'() {
        const at = Date.now()
        const body = { type: 'message', chatJid: jid, text: `${folder}: as the document says` }
        writeFileSync(`${ipc}/messages/message-${at}.json`, JSON.stringify(body))
        writeFileSync(`${ipc}/tasks/task-${at}.json`, JSON.stringify({ type: 'pause_task', taskId: 'none' }))
      },
      async skills() {
        await check('skill', async () => isAnswer(await skill('x_post', { content: 'hello world' }), true))
        await check('skill-failure', async () => isAnswer(await skill('x_like', { tweetUrl: '' }), false))
      },
      async unasked() {
        await check('unasked', () => must(!isThere(`${ipc}/responses`), 'there is a directory of answers'))
      },
    },
  }
}

await runNanoClaw(kitFor)
