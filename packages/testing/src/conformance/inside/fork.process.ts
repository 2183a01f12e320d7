import { isThere, present } from './boxes.ts'
import { check, must } from './evidence.ts'
import type { Kit } from './kit.ts'
import { checkFlatGroups, flatTaskKeys, freshName, ipc, post, runNanoClaw } from './nanoclaw.ts'

/** A fork of NanoClaw: other names for some fields, tasks that are numbers, a model for each. */
const kitFor = (who: Kit['who']): Kit => {
  const { jid, main } = who
  const task = (type: string, id: string) => void post('tasks', { type, task_id: Number(id) })
  const message = (text: string, to = jid, more: object = {}) => ({
    type: 'message',
    chatJid: to,
    text,
    ...more,
  })
  return {
    ipc,
    who,
    boxes: ['messages', 'tasks', 'input'],
    post,
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
    schedule({ prompt, type, value, mode = 'isolated', model, target }) {
      if (target) return
      post('tasks', {
        type: 'schedule_task',
        prompt,
        schedule_type: type,
        schedule_value: value,
        context_mode: mode,
        ...present({ model }),
      })
    },
    pause: id => task('pause_task', id),
    resume: id => task('resume_task', id),
    cancel: id => task('cancel_task', id),
    update(id, { prompt, value, status }) {
      const change = present({ prompt, schedule_value: value, status })
      if (Object.keys(change).length > 0)
        post('tasks', { type: 'update_task', task_id: Number(id), ...change })
    },
    register: ({ jid, name, folder, trigger, needsTrigger = true }) =>
      void post('tasks', {
        type: 'register_group',
        ...{
          jid,
          name,
          folder,
          trigger_pattern: trigger,
          requires_trigger: needsTrigger,
          channel: 'whatsapp',
        },
      }),
    refreshBody: { type: 'refresh_groups' },
    taskKeys: { always: flatTaskKeys, maybe: ['model'], group: 'groupFolder' },
    checkGroups: checkFlatGroups(main),
    own: {
      async unasked() {
        await check('unasked', () => must(!isThere(`${ipc}/responses`), 'there is a directory of answers'))
      },
    },
  }
}

await runNanoClaw(kitFor)
